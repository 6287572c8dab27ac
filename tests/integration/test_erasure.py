"""Erasure: once a subject's key is deleted, nothing personal of it can be read anywhere."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import psycopg
import pyarrow.parquet as pq
import pytest
from tests.capture.running import records
from tests.integration.archived import make_archive, move

from penstock.errors import ConfigurationError, ErasedError, EventTypeError
from penstock.log import Producer
from penstock.pipeline import Pipeline, Runner
from penstock.sourcing import (
    Aggregate,
    Append,
    Command,
    CommandHandler,
    DomainEvent,
    EventStore,
    Snapshots,
    publish,
    topic_of,
)
from penstock.sourcing.columns import as_columns
from penstock.targets.postgres import PostgresTable
from penstock.testing import given

SECRET = "Ada Byron-Lovelace"


@dataclass(frozen=True)
class Register(Command):
    name: str


@dataclass(frozen=True)
class Visit(Command):
    shop: str


@dataclass(frozen=True)
class Registered(DomainEvent, personal=("name",)):
    name: str | None


@dataclass(frozen=True)
class Visited(DomainEvent):
    shop: str


@dataclass(frozen=True)
class Person:
    name: str | None = None
    visits: int = 0


def decide(state, command):
    return Registered(command.name) if isinstance(command, Register) else Visited(command.shop)


def evolve(state, event):
    if isinstance(event, Registered):
        return replace(state, name=event.name)
    return replace(state, visits=state.visits + 1)


person = Aggregate(
    "person", Person(), decide, evolve, events=(Registered, Visited), snapshots=Snapshots(every=3)
)


@pytest.fixture
def store(settings, database):
    with EventStore(database.schema, settings) as made:
        made.create()
        yield made


def test_personal_fields_are_read_until_their_subject_is_erased(store):
    people = CommandHandler(store, person)
    people.execute("ada", Register(SECRET))
    people.execute("bob", Register("Bob"))
    for _ in range(4):
        people.execute("ada", Visit("bakery"))
    assert people.load("ada").state == Person(SECRET, 4)
    assert SECRET not in stored(store)
    store.erase("ada")
    assert people.load("ada").state == Person(None, 4)
    assert people.load("bob").state == Person("Bob", 0)
    for _ in range(4):
        people.execute("ada", Visit("bakery"))  # what is not personal goes on
    assert people.load("ada").state == Person(None, 8)
    with pytest.raises(ErasedError):
        people.execute("ada", Register(SECRET))
    store.erase("ada")  # again
    assert SECRET not in stored(store)


def test_another_process_has_forgotten_the_key_soon_after(store, settings, monkeypatch):
    people = CommandHandler(store, person)
    people.execute("ada", Register(SECRET))
    with EventStore(store.name, settings) as other:
        elsewhere = CommandHandler(other, person)
        assert elsewhere.load("ada").state.name == SECRET
        store.erase("ada")
        monkeypatch.setattr("penstock.sourcing.subject_keys._FRESH", 0.0)
        assert elsewhere.load("ada").state.name is None


def test_what_is_personal_in_a_class_is_so_in_those_below_it(store):
    @dataclass(frozen=True)
    class Vip(Registered):
        rank: str = "gold"

    store.append(Append("person", "ada", 0, (Vip(SECRET),), replace(person, events=(Vip,)).types))
    assert SECRET not in stored(store)


def test_a_type_that_is_not_personal_any_more_leaves_no_snapshot_in_the_clear(store):
    people = CommandHandler(store, person)
    people.execute("ada", Register(SECRET))

    @dataclass(frozen=True)
    class Renamed(DomainEvent, formerly=("Registered",)):
        name: str | None

    later = replace(person, events=(Renamed, Visited), evolve=lambda state, event: Person(SECRET, 1))
    people = CommandHandler(store, replace(later, snapshots=Snapshots(every=1)))
    people.execute("ada", Visit("mill"))
    assert SECRET not in stored(store)
    assert people.load("ada").behind == 0


def test_a_key_that_was_fetched_before_its_erasure_is_not_remembered(store, monkeypatch):
    CommandHandler(store, person).execute("ada", Register(SECRET))
    store.keys._known.clear()
    found = store.keys._found

    def slow(subject, make):
        cipher = found(subject, make)
        store.erase("ada")
        return cipher

    monkeypatch.setattr(store.keys, "_found", slow)
    list(store.read("person", "ada"))
    monkeypatch.setattr(store.keys, "_found", found)
    (record,) = store.read("person", "ada")
    assert json.loads(record.data) == {"name": None}


def test_many_writers_of_personal_events_do_not_wait_for_each_others_connections(settings, database):
    with EventStore(database.schema, settings, size=1) as small:
        small.create()
        people = CommandHandler(small, person)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda n: people.execute(f"p{n}", Register(SECRET)), range(16)))
        assert people.load("p7").state.name == SECRET


def test_a_text_that_looks_encrypted_is_only_a_text(store):
    people = CommandHandler(store, person)
    people.execute("ada", Visit("enc:1:AAAA"))
    people.execute("ada", Register("enc:1:AAAA"))
    assert people.load("ada").state == Person("enc:1:AAAA", 1)


def test_a_text_that_was_moved_elsewhere_is_not_decrypted(store):
    """Somebody who may write to the store can't show one person's text as another event's."""
    store.append(Append("person", "ada", 0, (Registered(SECRET),), person.types))
    with psycopg.connect(store.settings.dsn().value, autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO {store.name}.events (topic, stream, version, id, type, at, record, ordinal) "
            "SELECT topic, stream, 2, id, type, at, replace(record::text, %s, %s)::json, 1 "
            f"FROM {store.name}.events",
            ['"version":1', '"version":2'],
        )
    with pytest.raises(ConfigurationError, match="can't be decrypted in person/ada/2/name"):
        list(store.read("person", "ada"))


def test_keys_that_are_elsewhere_are_not_taken_for_erased(store, settings, unique):
    CommandHandler(store, person).execute("ada", Register(SECRET))
    with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
        connection.execute(f"DELETE FROM {store.name}.subject_keys")
    store.keys._known.clear()
    with pytest.raises(ConfigurationError, match="no key of the subject 'ada', and it was not erased"):
        list(store.read("person", "ada"))


def test_what_could_not_be_erased_is_refused():
    @dataclass(frozen=True)
    class Loud(DomainEvent, personal=("name",)):
        name: str

    @dataclass(frozen=True)
    class About(DomainEvent, personal=("name",), subject="who"):
        who: str
        name: str | None

    with pytest.raises(EventTypeError, match=r"Loud\.name is personal, and no text"):
        given(replace(person, events=(Loud,)))
    with pytest.raises(ConfigurationError, match="about others than their streams"):
        replace(person, events=(About,))
    replace(person, events=(About,), snapshots=Snapshots(every=None))


@pytest.mark.timeout(180)
def test_nothing_is_left_in_store_topic_dead_letters_or_view(
    store, settings, database, spark, tmp_path, unique
):
    """Everything that is kept of a person is looked through as bytes."""
    people, table = CommandHandler(store, person), f"people_{unique}"
    people.execute("ada", Register(SECRET))
    for _ in range(4):
        people.execute("ada", Visit("bakery"))
    capture = publish(store)
    with database.running(capture):
        people.execute("ada", Visit("mill"))
    values = [each.value for each in records(settings, f"{store.name}.person")]
    assert [each["version"] for each in values] == [1, 2, 3, 4, 5, 6]
    with Producer(settings) as producer:  # one that the flow can't decode, with what it has in it
        broken = json.dumps(values[0] | {"version": "first"})
        producer.send_bytes(f"{store.name}.person", b"ada", broken.encode())
    with Runner(
        naming(store, unique, table), replace(settings, data=tmp_path), spark=spark, once=True
    ) as runner:
        assert runner.wait(120)
    ((name,),) = database.execute(f"SELECT name FROM public.{table}").fetchall()
    letters = [each.value for each in records(settings, f"{store.name}.person.dead-letters")]
    assert len(letters) == 1
    assert name.startswith("enc:1:")
    assert store.keys.decrypt("ada", name, "person/ada/1/name") == SECRET
    archived = archive_of(settings, f"{store.name}.person", tmp_path / "archive")
    everything = json.dumps(values + letters) + archived + stored(store) + name
    assert "enc:1:" in everything
    assert "Byron" not in everything
    store.erase("ada")
    assert store.keys.decrypt("ada", name, "person/ada/1/name") is None


def archive_of(settings, topic, folder):
    """Move a topic to an archive, and return what its files hold, uncompressed."""
    make_archive(settings, topic, folder)
    move(settings, topic)
    tables = [pq.ParquetFile(each).read() for each in folder.rglob("*.parquet")]
    found = b"".join(row["value"] for table in tables for row in table.to_pylist()).decode()
    assert found.count("enc:1:") == 2  # the event, and the one that could not be decoded
    return found


def naming(store, unique, table):
    """A pipeline that writes who is who; the names go through it as they are stored."""
    pipeline = Pipeline(f"p{unique}")
    written = PostgresTable(f"public.{table}", key="stream", write="upsert")

    @pipeline.flow(reads={"events": topic_of(store.name, "person")}, writes=written)
    def named(events):
        rows = events.transform(as_columns(person, Registered))
        return rows.where("Registered is not null").select("stream", "Registered.name")

    return pipeline


def stored(store):
    """All that the store's tables hold, as text."""
    with psycopg.connect(store.settings.dsn().value, autocommit=True) as connection:
        tables = ("events", "snapshots", "positions")
        return "".join(
            str(connection.execute(f"SELECT each::text FROM {store.name}.{table} AS each").fetchall())
            for table in tables
        )
