"""Events of a store as Spark columns, and views of them now and in the past, beside plain Python."""

import json
import random
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated

import pytest

from penstock.apps.bank.account import Account, MoneyReceived, MoneySent, Opened, Withdrawn, account
from penstock.apps.bank.account import Deposited as BankDeposited
from penstock.apps.bank.views import balances, movements, statements
from penstock.errors import ConfigurationError
from penstock.events import Precision
from penstock.schemas import cast, default, merge, rename, spark_schema, split, upcast
from penstock.sourcing import Aggregate, DomainEvent, Recorded, part
from penstock.sourcing.columns import as_columns
from penstock.sourcing.folding import folded, what_if
from penstock.sourcing.totals import count, largest, latest, smallest, total
from penstock.sourcing.view import View
from penstock.testing import Feed

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Named(
    DomainEvent,
    formerly=("Christened",),
    upcasts=(
        upcast(1, rename("name", to="full"), cast("age", to="long")),
        upcast(2, split("full", into=["first", "last"]), default("title", "none")),
    ),
):
    first: str
    last: str | None
    age: int
    title: str = "none"


@dataclass(frozen=True)
class Moved(DomainEvent, upcasts=(upcast(1, merge(["street", "town"], into="address", on=", ")),)):
    address: str
    rent: Annotated[Decimal, Precision(9, 2)] | None = None


@dataclass(frozen=True)
class Left(DomainEvent):
    pass


person = Aggregate(
    "person",
    Account(),
    lambda state, command: None,
    lambda state, event: state,
    events=(Named, Moved, Left),
    split={"MovedAndLeft": (part(Moved, rename("to", to="address")), part(Left))},
    removed=("Looked",),
)
SAMPLES = [
    ("Named", 3, {"first": "Ada", "last": "Byron", "age": 7, "title": "Lady"}),
    ("Named", 3, {"first": "Ada", "last": None, "age": 7, "title": "none"}),
    ("Named", 2, {"full": "Ada Byron", "age": 8}),
    ("Named", 1, {"name": "Ada", "age": "9"}),
    ("Christened", 1, {"name": "Ada Byron King", "age": "10"}),
    ("Moved", 2, {"address": "a, b", "rent": "12.50"}),
    ("Moved", 2, {"address": "a, b", "rent": None}),
    ("Moved", 1, {"street": "High St", "town": "Bath", "rent": None}),
    ("Left", 1, {}),
    ("MovedAndLeft", 1, {"to": "Rome"}),
    ("Looked", 1, {"at": "something"}),
]


def record(number, type, version, data, stream="s", at=START):
    return Recorded(
        id=f"e{number}",
        category="person",
        stream=stream,
        version=number,
        type=type,
        schema_version=version,
        at=at,
        data=json.dumps(data),
    )


def frame(spark, records):
    schema = spark_schema(Recorded)
    rows = [tuple(getattr(each, name) for name in schema.names) for each in records]
    return spark.createDataFrame(rows, schema)


def event_of(row):
    """The one event that a row holds."""
    found = []
    for cls in person.events:
        value = row[cls.__name__]
        if value is not None:
            found.append(cls() if cls is Left else cls(**value.asDict()))
    return found


def test_spark_decodes_events_as_python_does(spark):
    records = [record(number, *sample) for number, sample in enumerate(SAMPLES, 1)]
    expected = [event for each in records for event in person.types.events_of(each)]
    rows = frame(spark, records).transform(as_columns(person)).orderBy("version", "part").collect()
    assert [event for row in rows for event in event_of(row)] == expected
    assert len(rows) == len(records) + 1  # one was split, and one that was removed is a row without an event


@pytest.mark.parametrize(
    ("type", "version", "data", "problem"),
    [
        ("Vanished", 1, {}, "is a Vanished, which nobody declares"),
        ("Named", 3, {"first": "Ada", "last": None, "age": "old"}, "field 'age'"),
        ("Named", 1, {"name": "Ada", "age": "old"}, "can't be upcast"),
        ("Named", 3, {"last": None, "age": 3}, "field 'first' is missing"),
        ("Named", 4, {"first": "Ada", "last": None, "age": 3}, "of another schema version"),
        ("Left", 2, {}, "of another schema version"),
    ],
)
def test_what_can_not_be_decoded_stops_the_query(spark, type, version, data, problem):
    rows = frame(spark, [record(1, type, version, data)]).transform(as_columns(person))
    with pytest.raises(Exception, match=problem):
        rows.collect()


def test_only_events_of_the_aggregate_are_asked_for():
    with pytest.raises(ConfigurationError, match="Opened is not an event of 'person'"):
        as_columns(person, Opened)


def history(seed, accounts=8, events=300):
    """Random histories of accounts, over some months, some of them at one moment."""
    chance = random.Random(seed)
    versions, records, at = {}, [], START
    for number in range(events):
        name = f"a{chance.randrange(accounts)}"
        at += timedelta(hours=chance.choice([0, 0, 1, 30]))
        versions[name] = versions.get(name, 0) + 1
        amount = Decimal(chance.randrange(1, 10_000)) / 100
        kinds = (BankDeposited(amount), Withdrawn(amount), MoneySent("t", amount), MoneyReceived("t", amount))
        event = Opened(name.upper()) if versions[name] == 1 else chance.choice(kinds)
        data = json.loads(account.types.data_of(event))
        made = record(versions[name], event.event_type, event.schema_version, data, name, at)
        records.append(replace(made, id=f"e{number}", category="account"))
    return records


def folded_here(records):
    """Balances, by the aggregate's own evolve."""
    states = {}
    for each in sorted(records, key=lambda one: (one.stream, one.version)):
        for event in account.types.events_of(each):
            states[each.stream] = account.evolve(states.get(each.stream, account.initial), event)
    return {name: (state.owner, state.balance) for name, state in states.items()}


def shown(rows):
    return {row["account"]: (row["owner"], row["balance"] or Decimal("0.00")) for row in rows.collect()}


@pytest.mark.parametrize("seed", [1, 2])
def test_a_view_is_what_folding_gives_now_and_at_any_time(spark, seed):
    records = history(seed)
    rows = frame(spark, records).cache()
    assert shown(balances(rows)) == folded_here(records)
    chance = random.Random(seed)
    for _ in range(4):
        moment = chance.choice(records).at + timedelta(seconds=chance.choice([-1, 0, 1]))
        assert shown(balances.at(rows, moment)) == folded_here(
            [each for each in records if each.at <= moment]
        )
    rows.unpersist()


def test_the_difference_between_two_times(spark):
    records = history(3, events=120)
    rows, (before, after) = frame(spark, records), (records[40].at, records[80].at)
    old, new = (folded_here([each for each in records if each.at <= at]) for at in (before, after))
    found = {row["account"]: row for row in balances.between(rows, before, after).collect()}
    moved = {each.stream for each in records if before < each.at <= after}
    assert set(found) == moved
    for name, row in found.items():
        assert (row["before"] is None) == (name not in old)
        assert row["before"] is None or (row["before"]["balance"] or Decimal(0)) == old[name][1]
        assert (row["after"]["balance"] or Decimal(0)) == new[name][1]


def test_the_history_of_one_key(spark):
    records = history(4, events=100)
    rows = balances.history(frame(spark, records), "a1").collect()
    own = [each for each in records if each.stream == "a1"]
    assert [row["version"] for row in rows] == [each.version for each in own]
    for place, row in enumerate(rows, 1):
        assert (row["balance"] or Decimal("0.00")) == folded_here(own[:place])["a1"][1]
    with pytest.raises(ConfigurationError, match="has 1 values, not 2"):
        balances.history(frame(spark, records), "a1", "b")


def test_a_kept_state_and_what_came_after_it_are_the_whole(spark):
    view = View(
        by="account",
        columns={
            "sum": total("amount"),
            "n": count(),
            "paid": count("amount"),
            "least": smallest("amount"),
            "most": largest("amount"),
            "last": latest("type"),
            "last_amount": latest("amount"),
        },
        rows=movements,
    )
    records = history(5)
    for cut in (0, 150):
        parts = [view.state(frame(spark, part)) for part in (records[:cut], records[cut:])]
        merged = view.merged(parts[0].unionByName(parts[1]))
        assert merged.dtypes == parts[0].dtypes, "it can be merged again"
        whole = sorted(view(frame(spark, records)).collect())
        assert sorted(view.finished(merged).collect()) == whole
        continued = view.continued(frame(spark, records[cut:]), parts[0])
        assert sorted(continued.collect()) == whole
        assert continued.dtypes == view(frame(spark, records)).dtypes


def test_a_view_follows_a_stream_and_ends_where_a_replay_does(spark):
    records = history(6, events=200)
    with Feed(spark, lambda events: balances(events), output="update", events=spark_schema(Recorded)) as feed:
        for first in range(0, 200, 67):
            feed.send(events=frame(spark, records[first : first + 67]).collect())
        newest = {row["account"]: row for row in feed.results}
    found = {name: (row["owner"], row["balance"] or Decimal("0.00")) for name, row in newest.items()}
    assert found == folded_here(records)


def test_what_if_it_had_been_otherwise(spark):
    """A fee that was forgotten: every withdrawal costs one."""
    records = history(8, events=60)

    def with_fee(state, event):
        after = account.evolve(state, event)
        fee = Decimal("1.00") if isinstance(event, Withdrawn) else Decimal("0.00")
        return replace(after, balance=after.balance - fee)

    rows = frame(spark, records)
    states = {row["stream"]: row["state"]["balance"] for row in rows.transform(folded(account)).collect()}
    assert states == {name: balance for name, (_, balance) in folded_here(records).items()}
    found = {
        row["stream"]: row for row in what_if(rows, account, replace(account, evolve=with_fee)).collect()
    }
    withdrawals = Counter(each.stream for each in records if each.type == "Withdrawn")
    assert set(found) == set(withdrawals)
    for name, row in found.items():
        assert row["before"]["balance"] - row["after"]["balance"] == withdrawals[name]


def test_statements_by_month(spark):
    records = history(7)
    expected = {}
    for each in records:
        for event in account.types.events_of(each):
            amount = getattr(event, "amount", None)
            if amount is None:
                continue
            paid_in, paid_out, moves = expected.get((each.stream, each.at.month), (0, 0, 0))
            is_in = isinstance(event, BankDeposited | MoneyReceived)
            expected[each.stream, each.at.month] = (
                paid_in + (amount if is_in else 0),
                paid_out + (0 if is_in else amount),
                moves + 1,
            )
    found = {
        (row["account"], row["month"].month): (row["paid_in"], row["paid_out"], row["movements"])
        for row in statements(frame(spark, records)).collect()
    }
    assert found == expected


def test_declarations_that_can_not_be_are_refused():
    with pytest.raises(ConfigurationError, match="with different names"):
        View(by="a", columns={"a": count()})
    with pytest.raises(ConfigurationError, match="no time with a zone"):
        balances.at(None, datetime(2026, 1, 1))
