"""Kafka's rows become the events that Python's codecs read in them, or dead letters with their cause."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from random import Random
from types import SimpleNamespace
from typing import Annotated
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import settings as trying
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, TimestampType
from tests.event_samples import Channel, Money, Order, orders, random_order
from tests.schema_directory import MemoryDirectory

from penstock.errors import ConfigurationError, DataError
from penstock.events import Event, Precision
from penstock.log import Broker, DeadLetter, Producer, Table, Topic, apply
from penstock.process.columns.names import DELETED, SOURCE
from penstock.process.spark.java_client import java_settings
from penstock.process.wire.decoding import unknown_schema
from penstock.process.wire.events import typed, undecodable
from penstock.process.wire.known_schemas import KnownSchemas, known_schemas
from penstock.process.wire.source import kafka_rows
from penstock.registry import Registry
from penstock.schemas import Mode, cast, default, merge, python, rename, spark_schema, split, upcast
from penstock.settings import Settings

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
KAFKA = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)
PLAIN = KnownSchemas()
UUID_TEXT = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"


@dataclass(frozen=True)
class Small(Event):
    """A class of many kinds that costs Spark little to compile."""

    name: str
    total: Money
    fine: Annotated[Decimal, Precision(10, 8)]
    count: int
    weight: float
    customer: UUID
    channel: Channel
    receipt: bytes
    at: datetime
    tier: int | None
    alias: str | None
    level: int | None = None
    note: str | None = "none"
    currency: str = "EUR"
    since: datetime = NOW


SMALL = Topic("small", Small)
GOOD = {
    "id": "s1",
    "name": "ada",
    "total": "1.50",
    "fine": "0.00000012",
    "count": 1,
    "weight": 1.5,
    "customer": UUID_TEXT,
    "channel": "web",
    "receipt": "YQ==",
    "at": "2026-01-01T00:00:00Z",
    "tier": None,
    "alias": "countess",
}


@pytest.fixture(autouse=True, scope="module")
def _limits(spark):
    """Damaged lengths would let Avro's reader ask for gigabytes."""
    for name in ("bytes", "string", "collectionItems"):
        spark._jvm.java.lang.System.setProperty(f"org.apache.avro.limits.{name}.maxLength", "1000000")


def rows_of(spark, values, topic="orders", keys=None):
    """Rows as Kafka's source gives them; the offset is the place in `values`."""
    keys = keys or [b"k"] * len(values)
    rows = [(topic, 0, at, NOW, keys[at], value, [("h", b"1")]) for at, value in enumerate(values)]
    return spark.createDataFrame(rows, KAFKA).coalesce(1)


def collected(frame):
    """The events by offset, with times as microseconds: Python can't hold all of Spark's."""
    times = {}
    for field in frame.schema:
        if isinstance(field.dataType, TimestampType):
            times[field.name] = F.unix_micros(field.name)
        elif isinstance(field.dataType, ArrayType) and field.dataType.elementType == TimestampType():
            times[field.name] = F.transform(field.name, F.unix_micros)
    found = {}
    for row in frame.withColumns(times).collect():
        event = row.asDict(recursive=True)
        offset = event.pop(SOURCE)["offset"]
        found[offset] = plain(event)
    return found


def plain(value):
    """A value as it comes out of Spark."""
    match value:
        case datetime():
            return (value - EPOCH) // timedelta(microseconds=1)
        case Enum():
            return value.value
        case UUID():
            return str(value)
        case bytearray():
            return bytes(value)
        case dict():
            return {key: plain(each) for key, each in value.items()}
        case list():
            return [plain(each) for each in value]
    return plain(vars(value)) if hasattr(value, "__dataclass_fields__") else value


def errors(frame):
    """The causes by offset, read as Penstock's own reader of dead letters reads them."""
    found = {}
    for row in frame.collect():
        assert row.topic.endswith(".dead-letters")
        letter = letter_of(row)
        found[letter.offset] = letter.error
    return found


def letter_of(row):
    headers = [(header.key, bytes(header.value)) for header in row.headers]
    value = None if row.value is None else bytes(row.value)
    return DeadLetter.from_message(
        SimpleNamespace(
            headers=lambda: headers, topic=lambda: row.topic, key=lambda: bytes(row.key), value=lambda: value
        )
    )


def read(spark, values, topic, known=PLAIN, keys=None):
    """Both halves of some values; each value is in exactly one of them."""
    rows = rows_of(spark, values, topic.name, keys)
    good, bad = collected(typed(rows, topic, known)), errors(undecodable(rows, topic, known))
    assert sorted([*good, *bad]) == list(range(len(values)))
    return good, bad


def known_of(directory, topic, *ids, unknown=()):
    schemas = {id: directory.written(topic.subject, id) for id in ids}
    return KnownSchemas(schemas, frozenset(unknown))


# Against Python's codecs


@cache
def many_orders():
    found = []

    @trying(max_examples=120, deadline=None, derandomize=True, database=None)
    @given(orders)
    def gather(order):
        found.append(order)

    gather()
    return found


def damaged(data, rng):
    """Flip, cut, insert or repeat a few bytes."""
    result, place = bytearray(data), rng.randrange(len(data))
    match rng.randrange(4):
        case 0:
            result[place] ^= 1 << rng.randrange(8)
        case 1:
            del result[place : place + rng.randrange(1, 9)]
        case 2:
            result[place:place] = rng.randbytes(rng.randrange(1, 5))
        case 3:
            result[place:place] = result[place : place + rng.randrange(1, 9)]
    return bytes(result)


def without_booleans(value):
    match value:
        case bool():
            return None
        case dict():
            return {key: without_booleans(each) for key, each in value.items()}
        case list():
            return [without_booleans(each) for each in value]
    return value


@pytest.mark.parametrize(
    ("format", "unknown"),
    [("json", "ignore"), ("json", "refuse"), ("avro", "ignore"), ("protobuf", "ignore")],
    ids=str,
)
def test_every_value_is_the_event_that_python_reads_or_a_dead_letter(spark, format, unknown):
    """One difference is known: a byte that is neither 0 nor 1 is false in Java's Avro, true in Python's."""
    directory, rng = MemoryDirectory(), Random(20261115)
    topic = Topic("orders", Order, format=format, unknown=unknown)
    codec, cases = topic.codec(directory), many_orders()
    values = [codec.encode(order) for order in cases]
    values += [damaged(codec.encode(random_order(rng)), rng) for _ in range(1500)]
    strangers = {int.from_bytes(value[1:5], "big") for value in values} - {1}
    known = PLAIN if format == "json" else known_of(directory, topic, 1, unknown=strangers)
    good, bad = read(spark, values, topic, known)
    assert all(at in good for at in range(len(cases)))
    events, failures = codec.decode_all(values)
    assert len(failures) > 1000
    for at, error in failures.items():
        assert at in bad, (values[at], error)
    stricter = [at for at in bad if at not in failures]
    assert len(stricter) <= 2, "a decimal of no bytes at all is 0 to Python only"
    blur = without_booleans if format == "avro" else plain
    for at in good.keys() - failures.keys():
        assert blur(good[at]) == blur(plain(events[at])), values[at]


@dataclass(frozen=True)
class Part:
    name: str
    size: int = 0


@dataclass(frozen=True)
class Kit(Event):
    """Records in all the places where a record may stand."""

    name: str
    first: Part
    spare: Part | None
    parts: list[Part]
    named: dict[str, list[Part]]
    at: datetime = NOW


KIT = {
    "id": "k1",
    "name": "x",
    "first": {"name": "a"},
    "spare": {"name": "b", "size": 2},
    "parts": [{"name": "c"}, {"name": "d"}],
    "named": {"any": [{"name": "e"}], "other": []},
}
STRANGE = [
    b"1", b"-0.5e3", b"null", b"[1,{}]", b'{"name":"x"}', b'"\\ud83d\\ude00"', b'"\\\\ud800"', b"1e999",
    b'"\\ud800"', b'"\\ud800\\u0041"', b'"\\udc00"', b'"\\ud83d\\\\\\ude00"', b'"\xff"', b'"\x01"', b'"\\x"',
    b"NaN", b"01", b"[1,]", b"tru", b".5", b"{", b'"', b"", b"1 2", b"/**/1",
]  # fmt: skip


def with_stranger(place, value):
    """A kit with a field that it should not have, at one of the places of an object in it."""
    kit = json.loads(json.dumps(KIT))
    objects = [kit, kit["first"], kit["spare"], *kit["parts"], *kit["named"]["any"]]
    objects[place]["strange \u00e9"] = "HERE"
    return json.dumps(kit).encode().replace(b'"HERE"', value)


@pytest.mark.parametrize("format", ["json", "json-schema"])
@pytest.mark.parametrize("unknown", ["ignore", "refuse"])
def test_what_becomes_of_unknown_fields_is_said_by_the_topic_to_spark_and_to_python(spark, format, unknown):
    directory = MemoryDirectory()
    topic = Topic("kits", Kit, format=format, unknown=unknown)
    codec = topic.codec(directory)
    known = json.dumps(KIT).encode()
    values = [with_stranger(place, value) for place in range(6) for value in STRANGE] + [known]
    values += [known.replace(b'"x"', value) for value in STRANGE if value.startswith(b'"')]
    if format == "json-schema":
        codec.encode(Kit("x", Part("a"), None, [], {}))  # which registers the schema
        values = [b"\0\0\0\0\1" + value for value in values]
    good, bad = read(spark, values, topic, PLAIN if format == "json" else known_of(directory, topic, 1))
    events, failures = codec.decode_all(values)
    assert sorted(bad) == sorted(failures)
    assert good == {at: plain(event) for at, event in enumerate(events) if event is not None}
    ignored = [at for at in good if at < 6 * len(STRANGE)]
    assert len(ignored) == (6 * 8 if unknown == "ignore" else 0)
    assert (bad.get(0) == "field 'strange \u00e9' is unknown") == (unknown == "refuse")


SPELLINGS = {
    "total": ["1", 1, 1.5, "1.5", "1.500", "-0.00", ".5", "5.", "+1", "1E+2", "1.005", 1.005, "1e10", "1e-3"],
    "id": ["", "x"],
    "fine": ["1.2E-7", "0E-8", "1E-8", "1e-9", "12.00000001", "123.0", "1.0000000010"],
    "count": [0, -1, 2**63 - 1, -(2**63), 2**63, 1.0, "1", True, None],
    "weight": [1, -0.0, 1e308, "1.5", "NaN", None, True],
    "customer": [UUID_TEXT.upper(), UUID_TEXT.replace("-", ""), UUID_TEXT[:-1], "{" + UUID_TEXT + "}", 5],
    "channel": ["web", "store", "WEB", "phone", "", None, 1],
    "receipt": ["", "YQ==", "YWI=", "YWJj", "YQ", "Y Q==", "Y-_j", "YQ==YQ==", "=", None],
    "at": [
        "2026-01-01T01:02:03.5Z",
        "2026-01-01 01:02:03z",
        "2026-01-01t01:02:03+05:30",
        "2026-01-01T01:02:03-0530",
        "2026-01-01T01:02:03.123456789Z",
        "2026-01-01T01:02:03.1234565+00:00",
        "2026-01-01T23:59:59.9999999Z",
        "2026-01-01T01:02:03",
        "2026-01-01T01:02Z",
        "2026-1-1T01:02:03Z",
        "2026-02-30T01:02:03Z",
        "2026-01-01T24:00:00Z",
        "0000-01-01T00:00:00Z",
        "2026-01-01T01:02:03 Europe/Berlin",
        "2026-01-01",
        1767225600,
        None,
    ],
    "level": [None, 5, "5", 1.5, 2**63],
    "tier": [5, -(2**63), "5", 1.5, 1.0, 2**63, True],
    "alias": [None, "", "5", 5, True, {}],
    "note": [None, "x", 5],
    "name": ["", "é\n\u2028", "5", None],
}


def test_each_spelling_of_a_value_means_what_it_means_to_python(spark):
    documents = [GOOD | {name: value} for name, each in SPELLINGS.items() for value in each]
    documents += [GOOD | {"total": value} for value in ("12345678901.00", "9999999999.99", "x", "", "NaN")]
    documents += [GOOD | {"total": value} for value in ("Infinity", True, [], {}, None)]
    documents += [{key: each for key, each in GOOD.items() if key != name} for name in GOOD]
    documents.append(GOOD | {"note": None, "currency": "SEK", "since": "2026-01-01T00:00:00+01:00"})
    values = [json.dumps(document).encode() for document in documents]
    values += [
        b"",
        b"null",
        b"[]",
        b"5",
        b"{",
        values[0] + b"}",
        values[0] + b" {}",
        b" " + values[0] + b"\n",
    ]
    values += [values[0].replace(b"1e400", b"NaN"), values[0].replace(b'"weight": 1.5', b'"weight": 1e400')]
    values += [values[0].replace(b"ada", b"\xff"), values[0].replace(b'"', b"'"), b"\xef\xbb\xbf" + values[0]]
    events, failures = SMALL.codec().decode_all(values)
    good, bad = read(spark, values, SMALL)
    for at, value in enumerate(values):
        assert (at in bad) == (at in failures), (value, failures.get(at), bad.get(at))
        assert good.get(at) == plain(events[at]), value


LENIENT = [
    ({"name": 5}, {"name": "5"}),
    ({"name": {"a": [1]}}, {"name": '{"a":[1]}'}),
    ({"currency": None}, {"currency": "EUR"}),
]


def test_where_spark_is_more_lenient_than_python(spark):
    values = [json.dumps(GOOD | change).encode() for change, _ in LENIENT]
    good, bad = read(spark, values, SMALL)
    assert bad == {}
    for at, (_, expected) in enumerate(LENIENT):
        assert expected.items() <= good[at].items()
        with pytest.raises(DataError):
            SMALL.codec().decode(values[at])


def test_no_text_can_go_on_behind_its_event(spark):
    """Each of these would be an event to a parser that looks at the first or the last of several."""
    one, two = (json.dumps(GOOD | {"name": name}) for name in ("one", "two"))
    between = [", ", ',"value":', ',"frame":', '],"frame":[', '],"x":[', "],[", "]}", "}", '],"frame":[{},']
    between += [',{"penstock mark":"0"}],"frame":[{"penstock mark":"0"},', '],"frame":[null,', " "]
    values = [f"{one}{each}{two}".encode() for each in between]
    values += [f"{one},{{".encode(), f"{one}]".encode(), f"{one}]}}".encode(), f"[{one}]".encode()]
    good, bad = read(spark, values, SMALL)
    assert (good, set(bad.values())) == ({}, {"the value is not JSON of Small"})


def test_a_dead_letter_says_what_is_wrong_and_is_the_same_when_it_is_written_again(spark):
    values = [
        json.dumps(GOOD | change).encode()
        for change in ({"total": "1.005"}, {"channel": "phone"}, {"count": 2**63}, {"level": "x"})
    ]
    rows = rows_of(spark, [*values, b"{", None], "small")
    letters = [letter_of(row) for row in undecodable(rows, SMALL, PLAIN).collect()]
    assert [letter.error for letter in letters] == [
        "field 'total' is missing or not decimal(12,2)",
        "field 'channel' is missing or not one of web, store",
        "field 'count' is missing or not bigint",
        "a part of the value is not JSON of Small",
        "the value is not JSON of Small",
        "a message without a value is not a Small",
    ]
    first = letters[0]
    assert (first.topic, first.partition, first.offset, first.at) == ("small", 0, 0, NOW)
    assert (first.key, first.value, first.headers) == (b"k", values[0], (("h", b"1"),))


def test_the_columns_are_those_of_the_class_and_the_source(spark):
    frame = typed(rows_of(spark, [json.dumps(GOOD).encode()], "small"), SMALL, PLAIN)
    wanted = [f"{field.name}:{field.dataType.simpleString()}" for field in spark_schema(Small)]
    headers = "array<struct<key:string,value:binary>>"
    place = f"{SOURCE}:struct<topic:string,partition:int,offset:bigint,written:timestamp,headers:{headers}>"
    assert frame.schema.simpleString() == f"struct<{','.join([*wanted, place])}>"
    found = frame.first()[SOURCE]
    assert (found.topic, found.partition, found.offset, found.headers[0].key) == ("small", 0, 0, "h")
    assert found.written.replace(tzinfo=UTC) == NOW


def test_a_value_is_parsed_once_however_the_events_are_used(spark):
    frame = typed(rows_of(spark, [], "small"), SMALL, PLAIN)
    used = frame.where("total > 1 and name <> 'x'").select("name", "total", F.upper("name"))
    plan = used._jdf.queryExecution().executedPlan().toString()
    assert plan.count("from_json(") == 1


def test_a_session_in_another_zone_reads_the_same_times(spark):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        value = json.dumps(GOOD | {"at": "2026-03-08T02:30:00.5Z"}).encode()
        rows = rows_of(spark, [value, b"x"], "small")
        written = rows.select(F.unix_micros("timestamp")).first()[0]
        good = collected(typed(rows, SMALL, PLAIN))
        letter = letter_of(undecodable(rows, SMALL, PLAIN).first())
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert good[0]["at"] == plain(datetime(2026, 3, 8, 2, 30, 0, 500_000, tzinfo=UTC))
    assert good[0]["since"] == plain(NOW)
    assert plain(letter.at) == written


# Tables


@dataclass(frozen=True)
class Profile(Event):
    card: int
    owner: UUID
    kind: Channel
    token: bytes
    at: datetime = NOW


@pytest.mark.parametrize(
    ("key", "kafka", "value", "damaged"),
    [
        ("card", b"-17", -17, b"x"),
        ("owner", UUID_TEXT.encode(), UUID_TEXT, b"1"),
        ("token", b"\xff\0", b"\xff\0", None),
    ],
)
def test_a_tombstone_has_the_key_and_nothing_else(spark, key, kafka, value, damaged):
    table = Table("profiles", Profile, key=key)
    event = Profile(1, UUID(UUID_TEXT), Channel.WEB, b"t", id="p1")
    values = [table.codec().encode(event), None, None]
    rows = rows_of(spark, values, "profiles", [b"k", kafka, damaged])
    good = collected(typed(rows, table, PLAIN))
    assert good[0] == plain(event) | {DELETED: False}
    assert good[1] == dict.fromkeys(vars(event)) | {key: value, DELETED: True}
    assert list(good) == [0, 1]
    assert undecodable(rows.where("key is not null"), table, PLAIN).count() == (damaged is not None)


# Schemas that change


@dataclass(frozen=True)
class OrderV1(Event, type="Order"):
    name: str
    amount: str
    at: datetime = NOW


@dataclass(frozen=True)
class OrderV2(Event, type="Order"):
    first: str
    last: str | None
    amount: Money
    street: str
    city: str
    at: datetime = NOW


@dataclass(frozen=True)
class OrderV3(Event, type="Order"):
    given: str
    family: str | None
    amount: Money
    address: str
    currency: str
    at: datetime = NOW
    tags: list[str] | None = None


UPCASTS = (
    upcast(
        1,
        split("name", into=("first", "last")),
        cast("amount", to="decimal(12,2)"),
        default("street", "?"),
        default("city", "?"),
    ),
    upcast(
        2,
        rename("first", to="given"),
        rename("last", to="family"),
        merge(("street", "city"), into="address", on=", "),
        default("currency", "EUR"),
    ),
)
VERSIONS = [
    OrderV1("Ada Lovelace", "12.5", id="1"),
    OrderV2("Grace", None, Decimal("3.10"), "Main St", "Arlington", id="2"),
    OrderV3("Mary", "Shelley", Decimal(4), "London", "GBP", id="3", tags=["a"]),
    OrderV1("x", "a lot", id="4"),
]


@pytest.mark.parametrize("format", ["avro", "json-schema", "protobuf"])
def test_an_event_of_any_version_is_read_as_the_newest(spark, format):
    directory = MemoryDirectory()
    values = [Topic("o", type(each), format=format).codec(directory).encode(each) for each in VERSIONS]
    topic = Topic("o", OrderV3, format=format, upcasts=UPCASTS)
    codec = topic.codec(directory)
    values += [b"\1" + values[2][1:], values[2][:4], values[2][:4] + b"\7" + values[2][5:], values[2] + b"x"]
    rng = Random(20261115)
    values += [value[:5] + damaged(value[5:], rng) for value in values[:3] for _ in range(100)]
    good, bad = read(spark, values, topic, known_of(directory, topic, 1, 2, 3, unknown=[7]))
    events, failures = codec.decode_all(values)
    assert set(range(3)) <= good.keys()
    lenient = [str(failures[at]) for at in good.keys() & failures.keys()]
    assert not lenient or format == "json-schema"
    assert all("missing required field `family`" in each for each in lenient)
    assert all(good[at] == plain(events[at]) for at in good.keys() - failures.keys())
    said = "'a lot', which can't be cast" if format == "protobuf" else "it can't be upcast from version 1"
    assert said in bad[3]
    assert bad[4] == bad[5] == "the value does not begin with a schema's number"
    assert bad[6] == "schema id 7 is unknown"


def test_nothing_may_stand_behind_an_avro_event(spark):
    """A mark that was the same for all could be written by anybody, and one that can be computed as well."""
    directory, topic = MemoryDirectory(), Topic("o", OrderV3, format="avro")
    value = topic.codec(directory).encode(VERSIONS[2])
    body, rest = value[5:], [b"tail", b"tail and more", b"\0", b"x" * 100]
    marks = [hashlib.md5(body).hexdigest(), hashlib.md5(body + b"x" * 32).hexdigest()]
    values = [value, *(value + each for each in (*rest, *(mark.encode() for mark in marks), value))]
    good, bad = read(spark, values, topic, known_of(directory, topic, 1))
    assert list(good) == [0]
    assert set(bad.values()) == {"the value is not Avro of OrderV3"}


@dataclass(frozen=True)
class ThingV1(Event, type="Thing"):
    count: int
    gone: str
    at: datetime = NOW


@dataclass(frozen=True)
class ThingV2(Event, type="Thing"):
    count: float
    fee: Money = Decimal("0.50")
    raw: bytes = b"\xff"
    at: datetime = NOW


@pytest.mark.parametrize("format", ["avro", "json-schema", "protobuf"])
def test_without_upcasts_missing_fields_have_the_classes_defaults(spark, format):
    directory = MemoryDirectory()
    old, topic = Topic("t", ThingV1, format=format), Topic("t", ThingV2, format=format)
    value = old.codec(directory).encode(ThingV1(3, "x", id="t1"))
    assert read(spark, [value], topic, known_of(directory, topic, 1)) == (
        {0: plain(topic.codec(directory).decode(value))},
        {},
    )


def test_a_schema_of_another_kind_makes_dead_letters(spark):
    directory = MemoryDirectory()
    value = Topic("t", ThingV1, format="json-schema").codec(directory).encode(ThingV1(3, "x"))
    topic = Topic("t", ThingV1, format="avro")
    _, bad = read(spark, [value], topic, known_of(directory, topic, 1))
    assert bad == {0: "the message's schema is JSON, the topic's AVRO"}


def test_a_step_in_python_is_refused_when_the_flow_is_described(spark):
    directory = MemoryDirectory()
    Topic("t", ThingV1, format="avro").codec(directory).encode(ThingV1(3, "x"))
    topic = Topic("t", ThingV2, format="avro", upcasts=(upcast(1, python(dict)),))
    with pytest.raises(ConfigurationError, match="is Python"):
        typed(rows_of(spark, []), topic, known_of(directory, topic, 1))


@pytest.mark.parametrize("half", [typed, undecodable])
def test_a_number_that_was_never_asked_for_fails_the_query(spark, half):
    topic = Topic("some.topic-1", ThingV1, format="avro")
    frame = half(rows_of(spark, [b"\0\xff\xff\xff\xfe.."]), topic, PLAIN)
    with pytest.raises(Exception, match="unknown-schema") as caught:
        frame.count()
    assert unknown_schema(str(caught.value)) == ("some.topic-1", 2**32 - 2)
    assert unknown_schema("another error") is None


# With a broker


def test_a_log_is_read_as_a_table_and_as_a_stream(spark, settings, unique, tmp_path):
    formats = ("json", "avro", "json-schema")
    topics = [Topic(f"source.{unique}.{each}", OrderV3, format=each, upcasts=UPCASTS) for each in formats]
    apply(topics, Broker(settings))
    with Registry(settings) as registry:
        assert all(known_schemas(topic, registry) == PLAIN for topic in topics)
        for topic in topics:
            registry.set_mode(Mode.NONE, topic.subject)
        for event in VERSIONS[:3]:
            with Producer(settings, schemas=registry) as producer:
                for topic in topics if event is VERSIONS[2] else topics[1:]:
                    version = Topic(topic.name, type(event), format=topic.format)
                    producer.send(version, event, headers=[("trace", b"1")])
        with Producer(settings) as producer:
            for topic in topics:
                producer.send_bytes(topic.name, None, b"\0damaged")
        known = {topic: known_schemas(topic, registry) for topic in topics}
    stranger = frozenset({int.from_bytes(b"dama", "big")})
    known = {topic: KnownSchemas(each.schemas, stranger) for topic, each in known.items()}
    for topic, expected in ((topics[0], {"3"}), (topics[1], {"1", "2", "3"})):
        rows = kafka_rows(spark, settings, [topic.name], streaming=False)
        assert {row.id for row in typed(rows, topic, known[topic]).collect()} == expected
        assert undecodable(rows, topic, known[topic]).count() == 1
    name = topics[0].name
    span = {"start": {name: {0: 0}}, "end": {name: {0: 1}}}
    part = kafka_rows(spark, settings, [name], streaming=False, **span).collect()
    assert [(row.offset, row.headers[0].key) for row in part] == [(0, "trace")]
    stream = kafka_rows(spark, settings, [topics[2].name], streaming=True)
    written = typed(stream, topics[2], known[topics[2]]).writeStream.format("memory").queryName(f"s{unique}")
    query = written.trigger(availableNow=True).option("checkpointLocation", str(tmp_path)).start()
    assert query.awaitTermination(60)
    assert {row.id for row in spark.table(f"s{unique}").collect()} == {"1", "2", "3"}


def test_java_reads_the_login_as_it_was_given(spark):
    """The line of jaas is written by us and read by Kafka's own class."""
    secret = 'a"b\\c;d\n\r {é} ${x}'
    guarded = {"bootstrap.servers": "b:1", "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    made = java_settings(Settings(kafka=guarded | {"sasl.username": "ada", "sasl.password": secret}))
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    find = spark._jvm.java.lang.Class.forName
    config = find("org.apache.kafka.common.security.JaasConfig", True, loader)
    maker = next(each for each in config.getDeclaredConstructors() if each.getParameterCount() == 2)
    maker.setAccessible(True)
    arguments = spark._sc._gateway.new_array(spark._jvm.Object, 2)
    arguments[0], arguments[1] = "KafkaClient", made["sasl.jaas.config"]
    [entry] = maker.newInstance(arguments).getAppConfigurationEntry("KafkaClient")
    assert dict(entry.getOptions()) == {"username": "ada", "password": secret}
