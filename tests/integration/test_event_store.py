"""The event store: versions without gaps, an order that can be trusted, and nothing twice."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import psycopg
import pytest
from tests.event_store import Writers, dense, same_order

from penstock.apps.bank.account import Account, Close, Deposit, Deposited, Open, Opened, Withdraw, account
from penstock.capture import Store
from penstock.errors import (
    ConfigurationError,
    ConflictError,
    RefusedError,
    RepeatedCommandError,
    StoreError,
)
from penstock.sourcing import (
    Append,
    CommandHandler,
    Context,
    Directed,
    EventStore,
    Position,
    Snapshots,
    execute_together,
    keep_position,
    position_of,
    publish,
    renumber,
    tail,
    tailing,
)
from penstock.sourcing.inserting import insert

ONE = Deposited(Decimal(1))


@pytest.fixture
def store(settings, unique):
    with EventStore(f"s{unique}", settings, size=12) as made:
        made.create()
        yield made
        with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {made.name} CASCADE")


@pytest.fixture
def accounts(store):
    return CommandHandler(store, account)


def append(store, stream, expected, *events, **more):
    return store.append(Append("account", stream, expected, events or (ONE,), account.types), **more)


def versions(store, stream, **more):
    return [each.version for each in store.read("account", stream, **more)]


def test_an_event_is_appended_once_at_the_version_that_was_expected(store):
    append(store, "ada", 0, Opened("Ada"))
    append(store, "ada", 1, ONE, ONE)
    assert versions(store, "ada") == [1, 2, 3]
    for expected in (0, 2, 4, 9):
        with pytest.raises(ConflictError) as caught:
            append(store, "ada", expected)
        assert (caught.value.expected, caught.value.actual) == (expected, 3)
        with pytest.raises(ConflictError):
            append(store, "ada", expected, ONE, ONE)
    assert store.version("account", "ada") == 3
    assert store.version("account", "nobody") == 0


@pytest.mark.parametrize("count", [1, 3, 60])
def test_one_some_and_many_follow_the_same_rules(store, settings, count):
    events = [Opened('a\t"b"\n\\c\\n ü\u2028')] * count
    stream = 'tab\tquote" back\\slash\nline ü'
    append(store, stream, 0, *events, command=f"c\t{stream}")
    append(store, stream, count, *events)
    for expected in {0, count - 1, count + 1, 2 * count - 1, 2 * count + 1} - {2 * count}:
        with pytest.raises(ConflictError) as caught:
            append(store, stream, expected, *events)
        assert caught.value.actual == 2 * count
    with pytest.raises(RepeatedCommandError) as repeated:
        append(store, stream, 2 * count, *events, command=f"c\t{stream}")
    assert len(repeated.value.records) == count
    records = list(store.read("account", stream))
    assert [each.version for each in records] == list(range(1, 2 * count + 1))
    assert {account.types.events_of(each) for each in records} == {(events[0],)}
    assert [each for _, each in tail(store, follow=False)] == records
    with psycopg.connect(settings.dsn().value) as connection:
        append(store, "first", 0, connection=connection)
        append(store, "other", 0)
        with pytest.raises(ConflictError):  # its transaction is older than the event it would follow
            append(store, "other", 1, *events, connection=connection)


def test_an_event_says_who_when_and_why(store, accounts):
    before = datetime.now(UTC)
    accounts.execute("ada", Open("Ada"), actor="teller", correlation="visit-1", id="open-1")
    (record,) = store.read("account", "ada")
    assert (record.actor, record.correlation, record.causation) == ("teller", "visit-1", "open-1")
    assert (record.type, record.schema_version, record.category) == ("Opened", 1, "account")
    assert before <= record.at <= datetime.now(UTC)


def test_a_stream_is_read_by_version_and_time_forwards_and_backwards(store, monkeypatch):
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)]
    clock = iter(times)
    store._appender._clock = lambda: next(clock)
    for expected in range(4):
        append(store, "ada", expected)
    monkeypatch.setattr("penstock.sourcing.store._PAGE", 2)
    assert versions(store, "ada", after=1) == [2, 3, 4]
    assert versions(store, "ada", after=1, to=3) == [2, 3]
    assert versions(store, "ada", until=times[1]) == [1, 2]
    assert versions(store, "ada", backwards=True) == [4, 3, 2, 1]
    assert versions(store, "ada", backwards=True, after=1, until=times[2]) == [3, 2]


def test_time_does_not_go_back_in_a_stream(store):
    late = datetime.now(UTC) + timedelta(hours=1)
    store._appender._clock = lambda: late
    append(store, "ada", 0)
    store._appender._clock = lambda: datetime.now(UTC)
    (record,) = append(store, "ada", 1)
    assert record.at == late
    append(store, "ada", 2, ONE, ONE)
    assert [each.at for each in store.read("account", "ada")] == [late] * 4


def test_stored_events_can_not_be_changed(store, settings):
    append(store, "ada", 0)
    with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
        for statement in ("UPDATE {}.events SET version = 7", "DELETE FROM {}.events", "TRUNCATE {}.events"):
            with pytest.raises(psycopg.errors.RaiseException, match="events are facts"):
                connection.execute(statement.format(store.name))


def test_several_streams_are_appended_to_together_or_not_at_all(store):
    store.append(
        Append("account", "ada", 0, (Opened("Ada"), ONE), account.types),
        Append("account", "bob", 0, (Opened("Bob"),), account.types),
    )
    with pytest.raises(ConflictError) as caught:
        store.append(
            Append("account", "ada", 2, (ONE,), account.types),
            Append("account", "bob", 0, (ONE,), account.types),
        )
    assert (caught.value.stream, caught.value.actual) == ("bob", 1)
    with pytest.raises(ConflictError):
        store.append(
            Append("account", "ada", 2, (ONE,), account.types),
            Append("account", "bob", 5, (ONE,), account.types),
        )
    assert (versions(store, "ada"), versions(store, "bob")) == ([1, 2], [1])
    with pytest.raises(ConfigurationError, match="twice at once"):
        store.append(*[Append("account", "ada", 2, (ONE,), account.types)] * 2)


def test_events_and_rows_of_an_application_are_one_transaction(store, settings):
    with psycopg.connect(settings.dsn().value) as connection:
        connection.execute(f"CREATE TABLE {store.name}.orders (id int)")
        connection.commit()
        connection.execute(f"INSERT INTO {store.name}.orders VALUES (1)")
        append(store, "ada", 0, connection=connection)
        connection.rollback()
        assert versions(store, "ada") == []
        connection.execute(f"INSERT INTO {store.name}.orders VALUES (1)")
        append(store, "ada", 0, connection=connection)
        connection.commit()
        assert versions(store, "ada") == [1]
        with pytest.raises(ConflictError):
            append(store, "ada", 0, connection=connection)
        connection.rollback()


def test_a_transaction_with_an_old_number_does_not_come_before_what_it_follows(store, settings):
    """The order is by transactions' numbers: this one got its own before the event that it comes after."""
    with psycopg.connect(settings.dsn().value) as connection:
        append(store, "first", 0, connection=connection)  # here it gets its number
        append(store, "ada", 0)
        with pytest.raises(ConflictError):
            append(store, "ada", 1, connection=connection)
        with pytest.raises(ConflictError):
            append(store, "ada", 1, ONE, ONE, connection=connection)
        connection.rollback()
        append(store, "ada", 1, connection=connection)
        connection.commit()
    assert [(each.stream, each.version) for _, each in tail(store, follow=False)] == [("ada", 1), ("ada", 2)]


def test_a_reader_waits_for_an_older_transaction_that_is_under_way(store, settings):
    with psycopg.connect(settings.dsn().value) as connection:
        append(store, "slow", 0, connection=connection)
        append(store, "fast", 0)
        assert list(tail(store, follow=False)) == []
        connection.commit()
    assert [each.stream for _, each in tail(store, follow=False)] == ["slow", "fast"]


def test_a_reader_goes_on_behind_its_position_and_reads_one_category(store):
    append(store, "ada", 0, ONE, ONE, ONE)
    store.append(Append("other", "ada", 0, (ONE,), account.types))
    (first, _), (second, _), *_ = tail(store, follow=False)
    assert [each.version for _, each in tail(store, after=first, category="account", follow=False)] == [2, 3]
    assert Position.parse(str(second)) == second
    with pytest.raises(ConfigurationError, match="not a position"):
        Position.parse("somewhere")


def test_a_reader_of_one_category_passes_those_of_others_once(store, monkeypatch):
    monkeypatch.setattr("penstock.sourcing.tailing._PAGE", 4)
    append(store, "ada", 0)
    store.append(Append("other", "ada", 0, (ONE,) * 10, account.types))
    append(store, "ada", 1)
    asked, page = [], tailing._page

    def noted(store, after, category):
        asked.append(after.sequence)
        return page(store, after, category)

    monkeypatch.setattr("penstock.sourcing.tailing._page", noted)
    assert [each.version for _, each in tail(store, category="account", follow=False)] == [1, 2]
    assert asked == [0, 4, 8, 12]
    store.append(Append("other", "bob", 0, (ONE,), account.types))
    stopped, asked[:] = threading.Event(), []
    threading.Timer(0.3, stopped.set).start()
    assert len(list(tail(store, category="other", stopped=stopped))) == 11
    assert asked[-2:] == [13, 13], "an empty store is asked again, and nothing of it is read twice"


def test_a_restored_store_is_numbered_anew_and_refuses_positions_from_before(store):
    for expected in range(3):
        append(store, "ada", expected)
    append(store, "bob", 0, ONE, ONE)
    before = list(tail(store, follow=False))
    renumber(store)
    after = list(tail(store, follow=False))
    assert [each for _, each in after] == [each for _, each in before]
    append(store, "ada", 3)
    assert [each.version for _, each in tail(store, after=after[-1][0], follow=False)] == [4]
    with pytest.raises(ConfigurationError, match="restored"):
        next(tail(store, after=before[0][0]))
    ahead = Position(after[0][0].origin, 2**40, 1, after[0][1].id)
    with pytest.raises(ConfigurationError, match="restored"):
        next(tail(store, after=ahead))


def test_a_command_with_an_id_is_done_once(store, accounts):
    accounts.execute("ada", Open("Ada"))
    first = accounts.execute("ada", Deposit(Decimal(5)), id="d1")
    again = accounts.execute("ada", Deposit(Decimal(5)), id="d1")
    assert again.repeated
    assert (again.version, again.records) == (first.version, first.records)
    with pytest.raises(ConfigurationError, match="used before, for account 'ada'"):
        accounts.execute("bob", Open("Bob"), id="d1")
    with pytest.raises(RepeatedCommandError):
        append(store, "ada", 2, command="d1")
    assert accounts.load("ada").state.balance == 5


def test_a_command_that_comes_in_many_times_at_once_is_done_once(accounts):
    accounts.execute("ada", Open("Ada"))
    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(lambda _: accounts.execute("ada", Deposit(Decimal(5)), id="d"), range(16)))
    assert {each.version for each in receipts} == {2}
    assert sum(not each.repeated for each in receipts) == 1
    assert accounts.load("ada").state.balance == 5


def test_writers_in_conflict_decide_again(accounts):
    accounts.execute("ada", Open("Ada"))
    accounts.execute("ada", Deposit(Decimal(100)))

    def take(_):
        try:
            accounts.execute("ada", Withdraw(Decimal(7)))
            return 1
        except RefusedError:
            return 0

    with ThreadPoolExecutor(8) as pool:
        taken = sum(pool.map(take, range(30)))
    assert taken == 14
    assert accounts.load("ada").state.balance == 2


def test_commands_that_are_done_together_are_refused_together(accounts):
    accounts.execute("ada", Open("Ada"))
    accounts.execute("bob", Open("Bob"))
    both = [Directed(accounts, "ada", Deposit(Decimal(5))), Directed(accounts, "bob", Withdraw(Decimal(5)))]
    with pytest.raises(RefusedError, match="InsufficientFunds"):
        execute_together(both)
    assert accounts.load("ada").version == 1
    fine = [Directed(accounts, "ada", Deposit(Decimal(5))), Directed(accounts, "bob", Close())]
    first, again = execute_together(fine, id="x"), execute_together(fine, id="x")
    assert [each.version for each in first] == [each.version for each in again] == [2, 2]
    assert [each.repeated for each in again] == [True, True]


@pytest.mark.parametrize("every", [1, 7, None])
def test_a_state_is_the_same_with_and_without_snapshots(store, every):
    plain = CommandHandler(store, account)
    handler = CommandHandler(store, _with(account, snapshots=Snapshots(every=every)))
    handler.execute("ada", Open("Ada"))
    for _ in range(20):
        handler.execute("ada", Deposit(Decimal(3)))
    for version in range(22):
        expected = account.fold(
            event
            for record in store.read("account", "ada", to=version)
            for event in account.types.events_of(record)
        )
        assert handler.load("ada", to=version).state == plain.load("ada", to=version).state == expected
    assert handler.load("ada").behind == (21 if every is None else 21 % every)


def test_a_snapshot_of_other_code_is_not_used_and_is_replaced(store):
    handler = CommandHandler(store, _with(account, snapshots=Snapshots(every=2)))
    handler.execute("ada", Open("Ada"))
    for _ in range(4):
        handler.execute("ada", Deposit(Decimal(3)))

    def doubled(state, event):
        after = account.evolve(state, event)
        return Account(after.owner, after.balance * 2, after.closed)

    corrected = CommandHandler(store, _with(account, evolve=doubled, snapshots=Snapshots(every=2)))
    assert corrected.load("ada").behind == 5
    corrected.execute("ada", Deposit(Decimal(1)))
    assert corrected.load("ada").behind == 0


def test_a_snapshot_is_taken_by_age(store):
    handler = CommandHandler(store, _with(account, snapshots=Snapshots(every=None, age="1 second")))
    handler.execute("ada", Open("Ada"))
    handler.execute("ada", Deposit(Decimal(3)))
    assert handler.load("ada").behind == 2
    time.sleep(1.1)
    handler.execute("ada", Deposit(Decimal(3)))
    assert handler.load("ada").behind == 0


def test_a_long_stream_is_loaded_in_pages(store):
    handler = CommandHandler(store, account)
    append(store, "ada", 0, Opened("Ada"), *[ONE] * 11_999)
    loaded = handler.load("ada")
    assert (loaded.version, loaded.state.balance) == (12_000, 11_999)
    handler.keep("ada", loaded)
    assert handler.load("ada").behind == 0


def test_a_lost_connection_loses_and_doubles_nothing(store, settings):
    """Connections are ended while 4 writers append; each append that returned is there, once."""
    done, stopped = [], threading.Event()

    def write(number):
        for version in range(150):
            while True:
                try:
                    append(store, f"w{number}", version, command=f"{number}/{version}")
                    break
                except RepeatedCommandError:  # it was done, and its answer was lost
                    break
                except StoreError:
                    time.sleep(0.05)
            done.append((f"w{number}", version + 1))

    def kill():
        with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
            while not stopped.wait(0.06):
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = %s ORDER BY random() LIMIT 2",
                    [f"penstock store {store.name}"],
                )

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, range(4)))
    finally:
        stopped.set()
        killer.join()
    with EventStore(store.name, settings) as reader:  # the last kills may have hit what the pool has idle
        stored = [(each.stream, each.version) for _, each in tail(reader, follow=False)]
    assert sorted(stored) == sorted(done)


@pytest.mark.parametrize("command", [None, "d1"])
def test_an_append_that_is_under_way_is_done_once(store, settings, monkeypatch, command):
    """The server goes on with it and commits while the client looks whether it did."""
    accounts = CommandHandler(store, account)
    accounts.execute("ada", Open("Ada"))
    slow, first = psycopg.connect(settings.dsn().value), []

    def lost(database, connection, batch, id):
        if not first:
            first.append(insert(database, slow, batch, id))
            threading.Timer(0.5, slow.commit).start()
            raise psycopg.OperationalError("the connection is lost")
        return insert(database, connection, batch, id)

    monkeypatch.setattr("penstock.sourcing.appending.insert", lost)
    receipt = accounts.execute("ada", Deposit(Decimal(100)), id=command)
    assert (receipt.version, accounts.load("ada").state.balance) == (2, 100)
    slow.close()


def test_a_command_that_another_sender_has_done_is_not_refused(store, monkeypatch):
    first, second = CommandHandler(store, account), CommandHandler(store, account)
    first.execute("ada", Open("Ada"))
    first.execute("ada", Deposit(Decimal(100)))
    load = second.load

    def late(stream, **more):
        first.execute("ada", Withdraw(Decimal(100)), id="w1")
        return load(stream, **more)

    monkeypatch.setattr(second, "load", late)
    receipt = second.execute("ada", Withdraw(Decimal(100)), id="w1")
    assert receipt.repeated
    assert first.load("ada").state.balance == 0


def test_a_snapshot_that_fails_fails_no_command(store, monkeypatch):
    accounts = CommandHandler(store, _with(account, snapshots=Snapshots(every=1)))

    def broken(stream, loaded):
        raise StoreError("no")

    monkeypatch.setattr(accounts, "keep", broken)
    assert accounts.execute("ada", Open("Ada")).version == 1


def test_an_event_that_evolve_can_not_take_is_not_stored(store):
    def evolve(state, event):
        raise ValueError("never seen such a thing")

    accounts = CommandHandler(store, _with(account, evolve=evolve))
    with pytest.raises(ValueError, match="never seen"):
        accounts.execute("ada", Open("Ada"))
    assert store.version("account", "ada") == 0


def test_stores_of_one_name_in_two_databases_are_two(store, settings):
    other = EventStore(
        store.name,
        replace(settings, connections={"copy": {"dsn": settings.dsn().value + "?options="}}),
        connection="copy",
    )
    handlers = [CommandHandler(each, account) for each in (store, other)]
    both = [Directed(each, name, Open("A")) for each, name in zip(handlers, "ab", strict=True)]
    with pytest.raises(ConfigurationError, match="for one store"):
        execute_together(both)
    other.close()


def test_a_kept_position_goes_along_when_events_are_numbered_anew(store):
    append(store, "ada", 0, ONE, ONE, ONE)
    (_, _), (second, _), (_, _) = tail(store, follow=False)
    keep_position(store, "reader", second)
    renumber(store)
    kept = position_of(store, "reader")
    assert [each.version for _, each in tail(store, after=kept, follow=False)] == [3]


def test_making_a_store_again_waits_for_no_writer(store, settings):
    with psycopg.connect(settings.dsn().value) as connection:
        append(store, "ada", 0, connection=connection)
        store.create()
        connection.rollback()


@pytest.mark.parametrize("category", ["", "Acc ount", "a.b", "a/../b", "x\ty\n"])
def test_a_category_that_is_no_part_of_a_topic_is_refused(category):
    with pytest.raises(ConfigurationError, match="not a category"):
        Append(category, "ada", 0, (ONE,), account.types)


def test_a_time_without_a_zone_and_a_stream_that_is_no_text_are_refused(store, accounts):
    accounts.execute("ada", Open("Ada"))
    for until in (datetime(2100, 1, 1), "2100-01-01"):
        with pytest.raises(ConfigurationError, match="no time with a zone"):
            accounts.load("ada", until=until)
        with pytest.raises(ConfigurationError, match="no time with a zone"):
            list(store.read("account", "ada", until=until))
    for ask in (lambda: accounts.load(7), lambda: store.version("account", 7)):
        with pytest.raises(ConfigurationError, match="7 is not a stream's name"):
            ask()


def test_two_commands_for_one_stream_are_not_done_together(accounts):
    with pytest.raises(ConfigurationError, match="two commands for one stream"):
        execute_together([Directed(accounts, "ada", Open("Ada")), Directed(accounts, "ada", Close())])


def test_a_store_that_is_not_there_is_not_published(settings, unique):
    with EventStore(f"n{unique}", settings) as missing:
        with pytest.raises(ConfigurationError, match=f"penstock store create n{unique}"):
            publish(missing)
        assert not missing.is_there


def test_stores_of_one_name_in_two_namespaces_do_not_share_topics(store, settings):
    publish(store)
    with EventStore(store.name, replace(settings, namespace="team")) as other:
        with pytest.raises(ConfigurationError, match="of another namespace is published"):
            publish(other)
        Store(settings).remove(f"{store.name}_events")
        publish(other)
        Store(other.settings).remove(f"{store.name}_events")


def test_texts_that_the_database_does_not_take_are_refused(store):
    with pytest.raises(ConfigurationError, match="actor="):
        append(store, "ada", 0, context=Context(actor="a\x00b"))
    with pytest.raises(ConfigurationError, match="id of 3000 letters"):
        append(store, "ada", 0, command="x" * 3000)


def test_names_that_can_not_be_are_refused(settings, store):
    with pytest.raises(ConfigurationError, match="not a store's name"):
        EventStore("Bank; drop", settings)
    with pytest.raises(ConfigurationError, match="not a stream's name"):
        append(store, "", 0)
    with EventStore("nowhere", settings) as missing, pytest.raises(ConfigurationError, match="store create"):
        append(missing, "ada", 0)


def test_32_writers_with_conflicts_and_rollbacks(store, settings):
    _campaign(settings, store, appends=10_000)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_32_writers_with_200_000_appends(store, settings):
    _campaign(settings, store, appends=200_000)


def _campaign(settings, store, appends):
    """Processes write with conflicts and rollbacks; a reader that follows them sees all, in order, once."""
    seen, stopped = [], threading.Event()
    reader = threading.Thread(
        target=lambda: seen.extend(
            (each.stream, each.version, each.id) for _, each in tail(store, stopped=stopped)
        )
    )
    reader.start()
    writers = Writers(settings, store.name, appends, seed=random.randrange(10**6))
    written = writers.run()
    until = time.monotonic() + 120
    while len(seen) < len(written) and time.monotonic() < until:
        time.sleep(0.1)
    stopped.set()
    reader.join()
    assert len(written) >= appends
    assert sorted(seen) == sorted(written)
    assert dense(seen)
    assert same_order(seen)
    assert writers.conflicts > 0
    assert writers.rollbacks > 0


def _with(aggregate, **changes):
    return replace(aggregate, **changes)
