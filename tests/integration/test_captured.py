"""Captured tables: what Debezium writes becomes rows and deletions, or dead letters with their cause."""

import json
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated
from uuid import UUID

import pytest
from pyspark.sql import functions as F
from tests.integration.debezium import (
    COMMITTED,
    avro,
    avro_envelope,
    avro_key,
    bare,
    column,
    envelope,
    unscaled,
    wrapped,
)
from tests.integration.test_sink_kafka import read as messages

from penstock.errors import FlowError
from penstock.events import Event, Precision
from penstock.log import Broker, Consumer, DeadLetter, Producer, Table, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.process import joins, lookup, read, windows
from penstock.process.wire.decoding import unknown_schema
from penstock.process.wire.events import typed, undecodable
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.registry import Registry
from penstock.schemas import SchemaKind, WrittenSchema
from penstock.testing import Feed, Sent, Tombstone

KAFKA = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)
WRITTEN = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
DUE = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
MICROS = int(DUE.timestamp()) * 1_000_000 + DUE.microsecond
CUSTOMER = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


@dataclass(frozen=True)
class Order(Event):
    id: int
    customer: UUID
    total: Annotated[Decimal, Precision(12, 2)]
    placed: datetime
    due: datetime | None
    day: date | None = None
    note: str | None = None
    photo: bytes | None = None
    weight: float | None = None
    paid: bool = False


@dataclass(frozen=True)
class Profile(Event):
    """A table whose key is not called id, and which has no time."""

    card: str
    home: str


ORDERS = Table("shop.public.orders", Order, key="id", format="debezium-json")
ROW = {
    "id": 1,
    "customer": CUSTOMER,
    "total": "1234.50",
    "placed": "2026-01-02T03:04:05.678901Z",
    "due": MICROS,
    "day": 20455,
    "note": "quick",
    "photo": "YQ==",
    "weight": 1.5,
    "paid": True,
    "added_later": {"x": 1},
}
EXPECTED = {
    "id": 1,
    "customer": CUSTOMER,
    "total": Decimal("1234.50"),
    "placed": DUE,
    "due": DUE,
    "day": date(2026, 1, 2),
    "note": "quick",
    "photo": b"a",
    "weight": 1.5,
    "paid": True,
}
CHANGE = {"op": "c", "before": None, "lsn": 24023128, "transaction": "571", "snapshot": False}


def rows_of(spark, values, keys=None):
    keys = keys or [b'{"id":1}'] * len(values)
    rows = [("orders", 0, at, WRITTEN, keys[at], value, None) for at, value in enumerate(values)]
    return spark.createDataFrame(rows, KAFKA).coalesce(1)


def utc(value):
    """A row as Python values; Spark's times have no zone."""
    match value:
        case datetime():
            return value.astimezone(UTC)
        case bytearray():
            return bytes(value)
        case dict():
            return {name: utc(each) for name, each in value.items()}
    return value


def decoded(spark, values, topic=ORDERS, keys=None, known=None):
    """The rows by offset, and the errors of the others."""
    frame, known = rows_of(spark, values, keys), known or KnownSchemas()
    rows = [utc(row.asDict(recursive=True)) for row in typed(frame, topic, known).collect()]
    letters = undecodable(frame, topic, known).select("offset", F.col("headers").alias("found")).collect()
    errors = {
        row.offset: next(
            bytes(each.value).decode() for each in row.found if each.key == "penstock.dead.error"
        )
        for row in letters
    }
    assert len(rows) + len(errors) == len(values)
    return {row["_source"]["offset"]: row for row in rows}, errors


def event(row, *marks):
    return {name: value for name, value in row.items() if name not in ("_source", "_change", "at", *marks)}


def test_a_row_of_bare_json(spark):
    before = ROW | {"total": "1.00"}
    rows, errors = decoded(
        spark,
        [
            bare(envelope("c", ROW)),
            bare(envelope("r", ROW, snapshot="last")),
            bare(envelope("u", ROW, before)),
            bare(envelope("u", ROW | {"total": 7, "due": None, "day": "2026-01-02"}, {"id": 1})),
        ],
    )
    assert errors == {}
    assert event(rows[0], "_deleted") == EXPECTED
    assert (rows[0]["_deleted"], rows[0]["at"]) == (False, COMMITTED)
    assert rows[0]["_change"] == CHANGE | {"committed": COMMITTED}
    assert (rows[1]["_change"]["op"], rows[1]["_change"]["snapshot"]) == ("r", True)
    assert rows[2]["_change"]["before"] == EXPECTED | {"total": Decimal("1.00")}
    assert event(rows[3], "_deleted") == EXPECTED | {"total": Decimal("7.00"), "due": None}
    assert rows[3]["_change"]["before"] == dict.fromkeys(EXPECTED) | {"id": 1}


def test_json_with_its_schema_is_taken_as_the_schema_says(spark):
    decimal = "org.apache.kafka.connect.data.Decimal"
    columns = [
        column("id", "int64"),
        column("total", "bytes", decimal, scale="2"),
        column("placed", "int64", "io.debezium.time.Timestamp"),
        column("due", "int64", "io.debezium.time.NanoTimestamp"),
        column("day", "int32", "io.debezium.time.Date"),
    ]
    row = ROW | {"total": unscaled(123450), "placed": MICROS // 1000, "due": MICROS * 1000 + 999}
    negative, large = (ROW | {"total": unscaled(each)} for each in (-5, 10**12 - 1))
    too_large, no_decimal = ROW | {"total": unscaled(10**12)}, ROW | {"total": "12.5"}
    values = [wrapped(envelope("c", each), columns) for each in (row, negative, large, too_large, no_decimal)]
    plain = wrapped(envelope("c", ROW), [column("total", "string")])
    rows, errors = decoded(spark, [*values, plain])
    assert event(rows[0], "_deleted") == EXPECTED | {"placed": DUE.replace(microsecond=678000)}
    assert rows[0]["_change"] == CHANGE | {"committed": COMMITTED}
    assert [rows[at]["total"] for at in (1, 2)] == [Decimal("-0.05"), Decimal("9999999999.99")]
    assert event(rows[5], "_deleted") == EXPECTED
    assert {at: error.split(";")[0] for at, error in errors.items()} == dict.fromkeys(
        (3, 4), "field 'total' is missing or not decimal(12,2)"
    )


def test_deletions_have_their_key_and_nothing_else(spark):
    made_up = {"id": 1, "customer": "", "total": "", "placed": "1970-01-01T00:00:00Z", "note": None}
    gone = envelope("d", before=made_up)
    wrapped_key = json.dumps({"schema": {"type": "struct"}, "payload": {"id": 4}}).encode()
    values = [bare(gone), None, bare(envelope("d")), None, None, None, bare(envelope("d"))]
    keys = [b'{"id":9}', b'{"id":2}', b'{"id":3}', wrapped_key, b'{"id":1} x', b"5", None]
    rows, errors = decoded(spark, values, keys=keys)
    assert {at: row["id"] for at, row in rows.items()} == {0: 1, 1: 2, 2: 3, 3: 4}
    for row in rows.values():
        assert row["_deleted"]
        assert event(row, "_deleted") == dict.fromkeys(EXPECTED) | {"id": row["id"]}
    assert (rows[0]["at"], rows[0]["_change"]["op"]) == (COMMITTED, "d")
    assert (rows[1]["at"], rows[1]["_change"]) == (WRITTEN, None)
    assert errors == dict.fromkeys(
        (4, 5, 6), "a deletion, and neither the row before nor Kafka's key has a 'id'"
    )


TRUNCATE = bare({name: each for name, each in envelope("t").items() if name not in ("before", "after")})
PRECISE = (
    "field 'total' is missing or not decimal(12,2); if Debezium writes it as bytes, "
    "set decimal.handling.mode=string"
)
MALFORMED = [
    (TRUNCATE, "the table was truncated (op 't'): all its rows are gone"),
    (bare(envelope("c", ROW | {"total": unscaled(-123450)})), PRECISE),
    (b"{", "the value is not JSON of a change of Order"),
    (bare(envelope("c", ROW)) + b"x", "the value is not JSON of a change of Order"),
    (b"{}", "op '' is no change of a row: expected c, u, r, d or t"),
    (bare(ROW), "op '' is no change of a row: expected c, u, r, d or t"),
    (bare(envelope("m")), "op 'm' is no change of a row: expected c, u, r, d or t"),
    (bare(envelope("c")), "op 'c' has no row 'after'"),
    (bare(envelope("c", {"id": 1})), "field 'customer' is missing or not string"),
    (bare(envelope("c", ROW | {"due": "soon"})), "field 'due' is missing or not timestamp"),
    (bare(envelope("c", ROW | {"due": 10**18})), "field 'due' is missing or not timestamp"),
    (bare(envelope("c", ROW | {"day": 10**10})), "field 'day' is missing or not date"),
    (bare(envelope("c", ROW | {"total": "NaN"})), "field 'total' is missing or not decimal(12,2)"),
    (bare(envelope("c", ROW | {"weight": "heavy"})), "a part of the value is not JSON of a change of Order"),
    (bare(envelope("u", ROW | {"note": "__debezium_unavailable_value"})), "field 'note' was not captured"),
]


def test_malformed_changes_say_why(spark):
    _, errors = decoded(spark, [value for value, _ in MALFORMED])
    assert {at: errors[at][: len(said)] for at, (_, said) in enumerate(MALFORMED)} == {
        at: said for at, (_, said) in enumerate(MALFORMED)
    }


def test_a_truncate_is_a_change_of_a_topic(spark):
    topic = Topic("profiles", Profile, key="card", format="debezium-json")
    rows, _ = decoded(spark, [TRUNCATE], topic, keys=[None])
    assert event(rows[0]) == {"id": None, "card": None, "home": None, "_deleted": True}
    assert rows[0]["_change"] == CHANGE | {"op": "t", "committed": COMMITTED}


def test_a_table_without_an_id_gives_events_the_text_of_its_key(spark):
    profiles = Table("profiles", Profile, key="card", format="debezium-json", time="changed")
    rows, _ = decoded(spark, [bare(envelope("c", {"card": "c1", "home": "Rome"})), None], profiles,
                      keys=[b'{"card":"c1"}'] * 2)  # fmt: skip
    found = {at: (row["id"], row["card"], row["home"], row["changed"]) for at, row in rows.items()}
    assert found == {0: ("c1", "c1", "Rome", COMMITTED), 1: (None, "c1", None, WRITTEN)}


def micro(name, type="long"):
    return {"type": type, "connect.version": 1, "connect.name": f"io.debezium.time.{name}"}


DECIMAL = {
    "type": "bytes",
    "scale": 2,
    "precision": 64,
    "connect.version": 1,
    "connect.parameters": {"scale": "2"},
    "connect.name": "org.apache.kafka.connect.data.Decimal",
    "logicalType": "decimal",
}
COLUMNS = [
    {"name": "id", "type": {"type": "int", "connect.default": 0}, "default": 0},
    {"name": "customer", "type": {"type": "string", "connect.name": "io.debezium.data.Uuid"}},
    {"name": "total", "type": DECIMAL},
    {"name": "placed", "type": micro("ZonedTimestamp", "string")},
    {"name": "due", "type": ["null", micro("MicroTimestamp")], "default": None},
    {"name": "day", "type": ["null", micro("Date", "int")], "default": None},
    {"name": "photo", "type": ["null", "bytes"], "default": None},
    {"name": "weight", "type": ["null", "double"], "default": None},
    {"name": "point", "type": ["null", {"type": "record", "name": "Point", "fields": []}], "default": None},
]
AVRO_ROW = {name: ROW[name] for name in ("id", "customer", "placed", "weight")} | {
    "total": Decimal("1234.50"),
    "due": MICROS,
    "day": 20455,
    "photo": b"a",
}
AVRO_ORDERS = replace(ORDERS, format="debezium-avro")


def known_avro(**keys):
    text = [("total", "string"), ("placed", micro("Timestamp"))]
    other = [
        each | ({"type": dict(text)[each["name"]]} if each["name"] in dict(text) else {}) for each in COLUMNS
    ]
    schemas = {1: avro_envelope(COLUMNS), 2: avro_envelope(other), 3: avro_key()}
    written = {id: WrittenSchema(SchemaKind.AVRO, json.dumps(each), id) for id, each in schemas.items()}
    key = WrittenSchema(SchemaKind.AVRO, json.dumps(avro_key("int")), 1)
    return schemas, KnownSchemas(written, frozenset({8}), **({"keys": {7: key}} | keys))


def test_avro_by_the_schemas_of_rows_and_keys(spark):
    schemas, known = known_avro()
    other = AVRO_ROW | {"total": "1234.50", "placed": MICROS // 1000}
    values = [
        avro(1, schemas[1], envelope("c", AVRO_ROW)),
        avro(2, schemas[2], envelope("u", other, other, snapshot="incremental")),
        avro(1, schemas[1], envelope("d", before=AVRO_ROW)),
        None,
        None,
        None,
        avro(3, schemas[3], {"id": 1}),
        avro(1, schemas[1], envelope("c", AVRO_ROW)) + b"x",
        b"\0\0\0\0\x08",
        avro(2, schemas[2], envelope("c", other | {"total": "NaN"})),
    ]
    keys = [avro(7, avro_key("int"), {"id": 5})] * len(values)
    keys[4], keys[5] = b"\0\0\0\0\x08x", keys[0] + b"x"
    rows, errors = decoded(spark, values, AVRO_ORDERS, keys, known)
    expected = EXPECTED | {"note": None, "paid": False}
    assert event(rows[0], "_deleted") == expected
    assert rows[0]["_change"] == CHANGE | {"committed": COMMITTED}
    second = expected | {"placed": DUE.replace(microsecond=678000)}
    assert event(rows[1], "_deleted") == second
    assert rows[1]["_change"]["before"] == second | {"paid": None}
    assert rows[1]["_change"]["snapshot"]
    assert [(rows[at]["id"], rows[at]["total"], rows[at]["_deleted"]) for at in (2, 3)] == [
        (1, None, True),
        (5, None, True),
    ]
    no_key = "a deletion, and neither the row before nor Kafka's key has a 'id'"
    assert errors == {
        4: no_key,
        5: no_key,
        6: "the message's schema is no envelope of Debezium's, with 'op', 'before' and 'after'",
        7: "the value is not Avro of a change of Order",
        8: "schema id 8 is unknown",
        9: "field 'total' is missing or not decimal(12,2)",
    }


def test_a_key_of_a_schema_that_is_not_known_stops_the_query(spark):
    _, known = known_avro(keys={})
    rows = rows_of(spark, [None], [avro(7, avro_key("int"), {"id": 5})])
    with pytest.raises(Exception, match="penstock:unknown-schema") as raised:
        typed(rows, AVRO_ORDERS, known).collect()
    assert unknown_schema(str(raised.value)) == (ORDERS.name, 7)


@dataclass(frozen=True)
class Payment(Event):
    card: str
    at: datetime


@dataclass(frozen=True)
class Known(Event):
    card: str
    home: str | None
    at: datetime


def send(place, topic, *messages):
    with Producer(place) as producer:
        for key, value in messages:
            producer.send_bytes(topic.name, key, value)


def card(op, name, home=None):
    row = {"card": name, "home": home}
    key = json.dumps({"card": name}).encode()
    return key, bare(envelope(op, before={"card": name})) if op == "d" else bare(envelope(op, row))


def results(topic, place):
    with Consumer(topic, place) as consumer:
        return [record.event for record in consumer.records(idle="2 seconds")]


def letters(topic, place):
    """The errors of a topic's dead letters."""
    found = messages(place, f"{topic.name}.dead-letters")
    return [DeadLetter.from_message(each).error for each in found]


@pytest.mark.long
@pytest.mark.timeout(240)
def test_events_beside_a_captured_table_in_real_time(settings, spark, tmp_path, unique):
    """A row, one that was updated, one that was deleted, one that never was, and a dead letter."""
    place = replace(settings, data=tmp_path)
    payments = Topic(f"{unique}.payments", Payment, key="card")
    profiles = Table(f"{unique}.profiles", Profile, key="card", format="debezium-json")
    known = Topic(f"{unique}.known", Known, key="card")
    pipeline = Pipeline(unique)

    @pipeline.flow(reads={"payments": payments, "profiles": profiles}, writes=known, mode="realtime")
    def find(payments, profiles):
        found = payments.transform(joins.latest(profiles, on="card", name="profile"))
        return found.selectExpr("id", "card", "profile.home as home", "at", "_source")

    apply([payments, profiles], Broker(place))
    changes = [card("r", "a", "Rome"), card("c", "b", "Oslo"), card("u", "b", "Bonn"), card("c", "d", "Kyiv")]
    send(place, profiles, *changes, card("d", "d"), (b'{"card":"d"}', None), (None, bare(envelope("t"))))
    with Producer(place) as producer:
        producer.send_all(payments, [Payment(each, WRITTEN, id=each) for each in "abcd"])
    with Runner(pipeline, place, spark=spark, once=True) as runner:
        assert runner.wait(180)
    homes = {event.card: event.home for event in results(known, place)}
    assert homes == {"a": "Rome", "b": "Bonn", "c": None, "d": None}
    assert [error.split(":")[0] for error in letters(profiles, place)] == ["the table was truncated (op 't')"]


def test_a_captured_table_is_looked_up_and_read_by_its_schemas(settings, spark, tmp_path, unique):
    """Rows and keys of Avro, registered as a converter does it; the flow learns those that come later."""
    place = replace(settings, data=tmp_path)
    payments = Topic(f"{unique}.payments", Payment, key="card")
    profiles = Table(f"{unique}.profiles", Profile, key="card", format="debezium-avro")
    known = Topic(f"{unique}.known", Known, key="card")
    pipeline = Pipeline(unique)

    @pipeline.flow(reads={"payments": payments}, looks_up={"profiles": profiles}, writes=known)
    def find(payments, profiles):
        assert profiles.columns == ["id", "card", "home", "at"]
        rows = payments.transform(lookup.broadcast(profiles, by="card", name="profiles"))
        return rows.selectExpr("id", "card", "profiles[card].home as home", "at", "_source")

    apply([payments, profiles], Broker(place))
    schema = avro_envelope([{"name": name, "type": "string"} for name in ("card", "home")])
    key_schema = avro_key("string", "card")
    with Registry(place) as registry:
        id = registry.id_for(profiles.subject, SchemaKind.AVRO, json.dumps(schema))
        key_id = registry.id_for(profiles.key_subject, SchemaKind.AVRO, json.dumps(key_schema))
    rows = [envelope("r", {"card": name, "home": home}) for name, home in (("a", "Rome"), ("b", "Oslo"))]
    keys = [avro(key_id, key_schema, {"card": name}) for name in "ab"]
    written = [(key, avro(id, schema, row)) for key, row in zip(keys, rows, strict=True)]
    send(place, profiles, *written, (keys[1], None))
    with Producer(place) as producer:
        producer.send_all(payments, [Payment(each, WRITTEN, id=each) for each in "ab"])
    with Runner(pipeline, place, spark=spark, once=True) as runner:
        assert runner.wait(120)
    assert {each.card: each.home for each in results(known, place)} == {"a": "Rome", "b": None}
    found = read(spark, profiles, place).orderBy("_source.offset").select("card", "_deleted", "_change.op")
    assert [tuple(row) for row in found.collect()] == [
        ("a", False, "r"),
        ("b", False, "r"),
        ("b", True, None),
    ]


def test_no_join_keeps_how_a_row_changed(spark):
    profiles = Table("profiles", Profile, key="card", format="debezium-json")
    again = {"card": "a", "home": "Oslo"}
    values = [card("c", "a", "Rome")[1], card("d", "a")[1], None, bare(envelope("c", again))]
    table = typed(rows_of(spark, values, [b'{"card":"a"}'] * 4), profiles, KnownSchemas())
    late = f"timestamp '{WRITTEN:%Y-%m-%d %H:%M:%S}+00:00' + interval 1 hour"
    source = "named_struct('topic', 't', 'partition', 0, 'offset', 0L, 'written', at) as _source"
    events = spark.sql(f"select *, {source} from (select 'a' as card, {late} as at)")
    names = ["id", "card", "home", "at"]
    found = {
        "latest": events.transform(joins.latest(table, on="card")),
        "as_of": events.transform(
            joins.as_of(table, on="card", time="at", since="at", history="1 day", early="correct")
        ),
        "tables": table.transform(joins.tables(table, on="card", keys="card", names=("row", "other"))),
    }
    for name, frame in found.items():
        row = frame.first().row
        assert (name, [*row.asDict()], row.home) == (name, names, "Oslo")


def per_minute(profiles):
    counted = windows.tumbling("1 minute", time="at", by="home", watermark="0 seconds")
    return profiles.where("not _deleted").transform(counted.agg(F.count("*").alias("changes")))


def test_changes_are_dated_by_their_commit(spark):
    """Without a time of its own, a table has that of the commits, by which windows close."""
    profiles = Table("profiles", Profile, key="card", format="debezium-json")
    with Feed(spark, per_minute, profiles=profiles) as feed:
        feed.send(profiles=[Sent(Profile("a", "Rome"), written=WRITTEN), Tombstone("a")])
        late = WRITTEN.replace(hour=13)
        feed.send(profiles=[Sent(Profile("a", "Oslo"), written=late)])
        assert [(row.home, row.changes) for row in feed.results] == [("Rome", 1)]
        with pytest.raises(FlowError, match="no event time of its own"):
            feed.send(profiles=[Profile("a", "Bonn")])
