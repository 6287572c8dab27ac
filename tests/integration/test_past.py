"""Questions about the past beside brute-force replay: random histories at random times, wherever they are."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

import pytest
from tests.integration.archived import make_archive, move

from penstock.apps.bank.account import Account, Close, Deposit, Open, Withdraw, account
from penstock.apps.bank.views import balances, statements
from penstock.errors import RefusedError
from penstock.log import Broker
from penstock.process import read
from penstock.sourcing import CommandHandler, EventStore, Snapshots, publish, tail, topic_of

START = datetime(2025, 11, 20, 12, tzinfo=UTC)
NAMES = [f"a{number}" for number in range(8)]
MOMENT = timedelta(microseconds=1)
ZERO = Decimal("0.00")


class Life:
    """Random commands to accounts over months, some at one moment, by clocks that do not agree."""

    def __init__(self, settings, name, seed):
        self.chance, self.now = Random(seed), START
        self.store = EventStore(name, settings, clock=self._time)
        self.store.create()
        self.accounts = CommandHandler(self.store, replace(account, snapshots=Snapshots(every=7)))

    def _time(self):
        return self.now - timedelta(seconds=self.chance.choice([0, 0, 0, 45]))

    def go_on(self, commands):
        for _ in range(commands):
            self.now += timedelta(seconds=self.chance.choice([0, 0, 1, 60, 90_000]))
            name, amount = self.chance.choice(NAMES), Decimal(self.chance.randint(1, 9_000)) / 100
            kinds = [Open(name.upper()), Deposit(amount), Deposit(amount), Withdraw(amount), Close()]
            with suppress(RefusedError):
                self.accounts.execute(name, self.chance.choices(kinds, [6, 6, 6, 6, 1])[0])

    def moments(self, count):
        """Times of events, the moments beside them, others, and those before and after all."""
        times = [each.at for each in self.records]
        whole = times[-1] - times[0]
        yield from (min(times) - MOMENT, max(times) + MOMENT)
        for _ in range(count):
            near = self.chance.choice(times) + self.chance.choice([-MOMENT, timedelta(0), MOMENT])
            yield self.chance.choice([near, times[0] + whole * self.chance.random()])

    @property
    def records(self):
        return [each for _, each in tail(self.store, follow=False)]


def states(records, until):
    """What each account was at a time: every event from the beginning, one after the other."""
    found = {}
    for each in records:
        if each.at <= until:
            state, _ = found.get(each.stream, (Account(), 0))
            (event,) = account.types.events_of(each)
            found[each.stream] = account.evolve(state, event), each.version
    return found


def rows_of(records, until):
    """The rows of balances, as replaying gives them."""
    return {
        name: (state.owner, state.balance, state.closed, version)
        for name, (state, version) in states(records, until).items()
    }


def months_of(records, until):
    """The rows of statements, as replaying gives them."""
    found, before = defaultdict(lambda: (ZERO, ZERO, 0)), {}
    for each in records:
        after = states([one for one in records if one.version <= each.version], each.at)[each.stream][0]
        amount = after.balance - before.get(each.stream, ZERO)
        before[each.stream] = after.balance
        if amount and each.at <= until:
            key = each.stream, each.at.date().replace(day=1)
            paid_in, paid_out, count = found[key]
            found[key] = paid_in + max(amount, ZERO), paid_out - min(amount, ZERO), count + 1
    return dict(found)


def shown(rows):
    return {row["account"]: _shown(row) for row in rows.collect()}


def _shown(row):
    return row["owner"], row["balance"], row["closed"], row["version"]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_store_knows_every_state_of_the_past(settings, unique, seed):
    life = Life(settings, f"s{unique}", seed)
    plain = CommandHandler(life.store, account)
    life.go_on(180)
    records = life.records
    assert len(records) > 50
    for moment in life.moments(15):
        due = states(records, moment)
        for name in NAMES:
            state, version = due.get(name, (Account(), 0))
            for handler in (life.accounts, plain):
                loaded = handler.load(name, until=moment)
                assert (loaded.state, loaded.version) == (state, version), (seed, name, moment)
            read_back = life.store.read("account", name, until=moment, backwards=True)
            assert [each.version for each in read_back] == list(range(version, 0, -1))
    life.store.close()


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [3, 4])
def test_views_know_every_state_of_the_past_in_topic_and_archive(settings, database, spark, tmp_path, seed):
    """A part of the history is only in the archive, one is only in Kafka; the store has all of it."""
    life, topic = Life(settings, database.schema, seed), topic_of(database.schema, "account", partitions=2)
    capture = publish(life.store, partitions=2)
    life.go_on(150)
    with database.running(capture):
        life.go_on(50)
    make_archive(settings, topic.name, tmp_path)
    move(settings, topic.name)
    assert max(first for first, _ in Broker(settings).offsets(topic.name).values()) > 0
    with database.running(capture):
        life.go_on(150)
    records = life.records
    rows = read(spark, topic, settings).cache()
    assert rows.count() == len(records)
    moments = list(life.moments(8))
    for moment in moments:
        assert shown(balances.at(rows, moment)) == rows_of(records, moment), (seed, moment)
    _check_months(rows, records, moments[2])
    for before, after in zip(moments[2:5], moments[5:8], strict=True):
        _check_difference(rows, records, before, after)
    for name in NAMES[:3]:
        _check_history(rows, records, name)
    life.store.close()


def _check_months(rows, records, moment):
    found = {
        (row["account"], row["month"]): (row["paid_in"], row["paid_out"], row["movements"])
        for row in statements.at(rows, moment).collect()
    }
    assert found == months_of(records, moment)


def _check_difference(rows, records, before, after):
    old, new = rows_of(records, before), rows_of(records, after)
    found = {
        row["account"]: tuple(each and _shown(each) for each in (row["before"], row["after"]))
        for row in balances.between(rows, before, after).collect()
    }
    changed = {name for name in {*old, *new} if old.get(name) != new.get(name)}
    assert found == {name: (old.get(name), new.get(name)) for name in changed}


def _check_history(rows, records, name):
    own = [each for each in records if each.stream == name]
    found = [_shown(row) for row in balances.history(rows, name).collect()]
    assert found == [rows_of(own[:place], own[-1].at)[name] for place in range(1, len(own) + 1)]
