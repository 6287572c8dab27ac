"""Protobuf from end to end: producers, consumers and flows, with Confluent's own serializer beside them."""

import threading
from dataclasses import dataclass, make_dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated

import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import functions as F
from tests.integration.test_flows import copying, run_once
from tests.integration.test_process_source import errors, rows_of
from tests.integration.test_registry import served
from tests.integration.test_sink_kafka import read
from tests.schema_directory import MemoryDirectory

from penstock.errors import FlowError
from penstock.events import Event, Precision
from penstock.log import Broker, Consumer, Producer, Table, Topic, apply
from penstock.pipeline import verify
from penstock.process.columns.names import DELETED
from penstock.process.wire.events import typed, undecodable
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.messages import encoded
from penstock.registry import Registry
from penstock.schemas import Mode, NumberedSchema, ProtobufCodec, SchemaKind, WrittenSchema
from penstock.schemas.protobuf.files import files_of

NOW = datetime(2026, 1, 1, 10, 20, 30, 123456, tzinfo=UTC)
Money = Annotated[Decimal, Precision(12, 2)]
CONFLUENT = {"use.deprecated.format": False}


class Kind(Enum):
    NEW = "new"
    USED = "used-once"


@dataclass(frozen=True)
class Car(Event, type="cars.Car"):
    plate: str
    price: Money
    kind: Kind
    at: datetime
    owners: list[str]
    mileage: dict[str, float | None]
    note: str | None = "usual"


@dataclass(frozen=True)
class Sold(Event):
    plate: str
    price: Money
    kind: Kind
    owners: list[str]
    at: datetime
    note: str | None = None


def cars(count):
    return [
        Car(f"p{n}", Decimal(n) / 4, [*Kind][n % 2], NOW, ["a"] * (n % 3), {"x": None}, id=f"c{n}")
        for n in range(count)
    ]


FOREIGN = """syntax = "proto3";
package %s;
import "google/protobuf/timestamp.proto";
message Address { string street = 1; }
message Yard {
  message Vehicle {
    string plate = 7;
    string price = 2;
    Kind kind = 3;
    google.protobuf.Timestamp at = 4;
    string id = 5;
    repeated string owners = 1;
    map<string, Reading> mileage = 8;
    Address yard = 9;
  }
  message Reading { double value = 1; }
  enum Kind { KIND_UNSPECIFIED = 0; KIND_USED_ONCE = 4; }
}
"""


def foreign_type(unique):
    """Another team's message, which is neither the first of its file nor at its top."""
    text = FOREIGN % f"p{unique}"
    return files_of(WrittenSchema(SchemaKind.PROTOBUF, text, None)).message((1, 0))


def by_confluent(client, topic, message):
    serializer = ProtobufSerializer(type(message), client, CONFLUENT)
    return serializer(message, SerializationContext(topic, MessageField.VALUE))


@pytest.fixture
def place(settings, tmp_path):
    return replace(settings, data=tmp_path)


@pytest.fixture
def registry(settings):
    with Registry(settings, patience="500 ms") as found:
        yield found


def test_confluents_serializer_and_ours_read_each_other(settings, registry, unique, tmp_path):
    mine, theirs = (Topic(f"{name}.{unique}", Car, format="protobuf") for name in ("mine", "theirs"))
    apply([mine, theirs], Broker(settings))
    made = foreign_type(unique)
    vehicle = made(plate="x", price="1.5", kind=4, at=NOW, id="v1", owners=["a", "b"], yard={"street": "Way"})
    with Producer(settings, schemas=registry) as producer, served(settings, tmp_path) as (_, client):
        producer.send_bytes(theirs.name, None, by_confluent(client, theirs.name, vehicle))
        producer.send(mine, cars(1)[0])
        producer.flush()
        with Consumer(theirs, settings, schemas=registry) as consumer:
            (record,) = consumer.records(idle="1 second")
        assert record.event == Car("x", Decimal("1.50"), Kind.USED, NOW, ["a", "b"], {}, id="v1")
        text = client.get_latest_version(mine.subject).schema.schema_str
        own = files_of(WrittenSchema(SchemaKind.PROTOBUF, text, None)).message()
        context = SerializationContext(mine.name, MessageField.VALUE)
        (message,) = read(settings, mine.name)
        seen = ProtobufDeserializer(own, CONFLUENT, schema_registry_client=client)(message.value(), context)
        assert (seen.plate, seen.kind, seen.at.ToDatetime(tzinfo=UTC), seen.note) == ("p0", 1, NOW, "usual")
        again = by_confluent(client, mine.name, seen)
        with Consumer(mine, settings, schemas=registry) as consumer:
            codec = mine.codec(registry)
            assert codec.decode(again) == next(iter(consumer.records(idle="1 second"))).event == cars(1)[0]


def test_writers_that_come_at_the_same_time_never_give_one_number_to_two_fields(settings, unique):
    names, found = "abcdef", {}
    classes = {
        name: make_dataclass(
            "Thing", [("at", datetime), (name, str | None, None)], bases=(Event,), frozen=True
        )
        for name in names
    }

    def write(name):
        with Registry(settings) as registry:
            found[name] = ProtobufCodec.numbered(classes[name], unique, registry).text

    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    numbers = {
        field.number
        for name, text in found.items()
        for field in files_of(WrittenSchema(SchemaKind.PROTOBUF, text, None)).message().DESCRIPTOR.fields
        if field.name == name
    }
    assert len(numbers) == len(names)


@dataclass(frozen=True)
class NewerCar(Car, type="cars.Car"):
    color: str = "red"


def found_in(topic, settings, registry):
    with Consumer(topic, settings, schemas=registry) as consumer:
        return {record.event.id: record.event for record in consumer.records(idle="1 second")}


def sold(car):
    return Sold(car.plate, car.price, car.kind, car.owners, car.at, car.note, id=car.id)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_flow_reads_protobuf_and_writes_protobuf(place, spark, registry, unique, tmp_path):
    source = Topic(f"cars.{unique}", Car, key="plate", partitions=2, format="protobuf")
    target = Topic(f"sold.{unique}", Sold, key="plate", format="protobuf")
    side = Topic(f"cheap.{unique}", Sold, format="protobuf")
    apply([source, target, side], Broker(place))

    def without_cheap(rows):
        return rows.drop("mileage").withColumn("_side_output", F.when(F.col("price") < 1, side.name))

    pipeline = copying(f"p{unique}", source, target, without_cheap, side_outputs=(side,))
    with Producer(place, schemas=registry) as producer:
        producer.send_all(source, cars(40))
        producer.flush()
        good = read(place, source.name)[0].value()
        for bad in (b"", b"\0" * 5, good[:5] + b"\7\7", good[:-3], b"\0\0\x99\0\0rest"):
            producer.send_bytes(source.name, b"bad", bad)
    run_once(pipeline, place, spark)
    expected = {car.id: sold(car) for car in cars(40)}
    assert found_in(target, place, registry) == {id: each for id, each in expected.items() if each.price >= 1}
    assert {*found_in(side, place, registry)} == {"c0", "c1", "c2", "c3"}
    assert len(read(place, f"{source.name}.dead-letters")) == 5

    newer = Topic(source.name, NewerCar, key="plate", format="protobuf")
    vehicle = foreign_type(unique)(plate="x", price="9", kind=4, at=NOW, id="v1")
    with Producer(place, schemas=registry) as producer, served(place, tmp_path) as (_, client):
        producer.send(newer, NewerCar("y", Decimal(7), Kind.NEW, NOW, [], {}, None, id="n1"))
        registry.set_mode(Mode.NONE, source.subject)
        producer.send_bytes(source.name, b"x", by_confluent(client, source.name, vehicle))
    run_once(pipeline, place, spark)
    found = found_in(target, place, registry)
    assert found["n1"] == Sold("y", Decimal(7), Kind.NEW, [], NOW, id="n1")
    assert found["v1"] == Sold("x", Decimal(9), Kind.USED, [], NOW, "usual", id="v1")
    verification, *_ = verify(pipeline, place, spark)
    assert (verification.ok, verification.found) == (True, 42)


def test_real_time_has_no_room_for_protobuf():
    source, target = Topic("a", Car, format="protobuf"), Topic("b", Car)
    for each in ((source, target), (target, source)):
        with pytest.raises(FlowError, match=r"can't run in real-time mode: 'a' is protobuf"):
            copying("p", *each, mode="realtime")


def test_a_table_has_tombstones_in_protobuf_too(spark):
    directory, table = MemoryDirectory(), Table("cars", Car, key="plate", format="protobuf")
    values = [*map(table.codec(directory).encode, cars(2)), None, None, b"\0\0\0\0\1\0"]
    known = KnownSchemas({1: directory.written(table.subject, 1)})
    rows = rows_of(spark, values, "cars", keys=[b"p0", b"p1", b"p1", None, b"p9"])
    found = {row._source.offset: row for row in typed(rows, table, known).collect()}
    assert {at: (row.plate, row[DELETED]) for at, row in found.items()} == {
        0: ("p0", False),
        1: ("p1", False),
        2: ("p1", True),
    }
    bad = errors(undecodable(rows.where("key is not null"), table, known))
    assert list(bad) == [4]
    schemas = {"cars": NumberedSchema(1, known.schemas[1].text)}
    changes = typed(rows.where("offset < 3"), table, known).orderBy("_source.offset")
    messages = encoded(changes, table, flow="copy", schemas=schemas).collect()
    assert [each.value and bytes(each.value) for each in messages] == values[:3]
