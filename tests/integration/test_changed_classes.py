"""State in flight while the classes of its events change: it comes out right, or is refused at once."""

import json
from collections import defaultdict
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType
from tests.integration.changing import Version

from penstock.errors import FlowError
from penstock.events import Event, Precision
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.pipeline import Runner
from penstock.pipeline.state import compare_state, describe_state
from penstock.process import joins
from penstock.process.state.pinned import ADDED, Pin, Pins, pinned, pinning
from penstock.process.wire.lineages import lineages
from penstock.schemas import rename, spark_schema, upcast

NAME = "changing"
START = datetime(2026, 1, 1, tzinfo=UTC)
WEB, APP = {"channel": "web"}, {"channel": "app"}


def at(minutes):
    return START + timedelta(minutes=minutes)


def run(spark, place, version, flows=None, **sent):
    """Send events and run flows to their end."""
    world = Version(version, NAME)
    apply([world.payments, world.profiles, world.limits, world.results], Broker(place))
    with Producer(place) as producer:
        for topic, rows in sent.items():
            cls = world.payment if topic == "payments" else world.profile
            producer.send_all(getattr(world, topic), [cls(*row[:3], **dict(*row[3:])) for row in rows])
    with Runner(world.pipeline, place, flows=flows, once=True, spark=spark) as runner:
        assert runner.wait(300)
    return world


def results(world, place):
    """What each operator has emitted, by amount or limit: lanes write side by side, in no order."""
    found = defaultdict(list)
    with Consumer(world.results, place) as consumer:
        for record in consumer.records(idle="2 seconds"):
            row = json.loads(record.event.text)
            found[row.pop("operator")].append(row)
    for rows in found.values():
        rows.sort(key=lambda row: row.get("amount", row.get("limit")) or 0)
    return found


def summed(rows, *sums):
    return [row | {"spent": spent} for row, spent in zip(rows, sums, strict=True)]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_field_is_added_and_another_renamed_while_events_wait(spark, settings, tmp_path):
    place = replace(settings, data=tmp_path)
    run(
        spark, place, 1,
        profiles=[("ada", 100, at(0))], limits=[("ada", 7, at(0))], payments=[("ada", 1, at(60))],
    )  # fmt: skip
    run(spark, place, 2, payments=[("ada", 2, at(70), APP)])
    world = run(
        spark, place, 3,
        profiles=[("bob", 5, at(2400))], limits=[("ada", 9, at(90))],
        payments=[("ada", 3, at(80), APP), ("bob", 9, at(2400))],
    )  # fmt: skip
    found = results(world, place)
    ada = [{"customer": "ada", "amount": 1} | WEB] + [{"customer": "ada", "amount": n} | APP for n in (2, 3)]
    before = [{"card": "ada", "amount": 1}, {"card": "ada", "amount": 2} | APP]
    bob = {"customer": "bob", "amount": 9} | WEB
    profile = {"limit": 100, "tier": "basic"}
    assert found["as_of"] == [each | profile for each in ada]
    assert found["sliding"] == summed(ada, 1, 3, 6)
    assert found["first"] == [before[0], bob]
    assert found["match"] == [{"matched": ada}]
    assert found["view"] == [
        {"change": "insert", "card": "ada", "limit": 7},
        {"change": "update", "customer": "ada", "limit": 9, "tier": "basic"},
    ]
    assert found["recent"] == summed([*before, ada[2], bob], 1, 3, 6, 9)
    assert found["latest"][:3] == [before[0] | {"limit": 100}, before[1] | profile, ada[2] | profile]
    assert found["within"][:3] == [{"who": "ada", "amount": n, "limit": 100} for n in (1, 2, 3)]
    assert found["native"] == found["spent_in_sql"] == [{"customer": "ada", "spent": 6}]
    assert found["pairs_in_sql"] == [
        {"card": "ada", "amount": 1, "next": 2},
        {"customer": "ada", "amount": 2, "next": 3},
    ]
    with pytest.raises(FlowError, match="limit was bigint, and would be string"):
        run(spark, place, 4, flows=["final"])


@dataclass(frozen=True)
class Click(Event):
    ad: str
    n: int
    at: datetime


@dataclass(frozen=True)
class Shown(Event):
    """A click of later days: a field has another name, and one has come."""

    banner: str
    n: int
    at: datetime
    page: str = "home"


clicks = Topic("clicks", Click)
shown = Topic("clicks", Shown, upcasts=(upcast(1, rename("ad", to="banner")),))


def described(spark, topic, operator):
    """The state of an operator over a topic; only planned."""
    types, rows = spark_schema(topic.event), spark.readStream.format("rate").load()
    columns = [
        F.expr("value").cast("string").cast(types[name].dataType).alias(name, metadata=each.to_metadata(name))
        for name, each in lineages(topic).items()
    ]
    found = rows.select(*columns).transform(operator)
    return describe_state("1", found, ["clicks"])


def near(columns):
    def joined(rows):
        key = rows.columns[1]
        join = joins.within(rows, on=key, time="at", watermark="1 minute", before="1 hour")
        return rows.transform(join).select(*columns)

    return joined


@pytest.mark.parametrize(
    ("operator", "kept"),
    [
        (lambda rows: rows.dropDuplicates([rows.columns[1]]), True),
        (lambda rows: rows.dropDuplicates(), False),
        (lambda rows: rows.groupBy(rows.columns[1]).agg(F.sum("n").alias("n")), True),
        (lambda rows: rows.groupBy(rows.columns[1]).agg(F.last(F.struct(*rows.columns)).alias("n")), False),
        (near(["left.n", "right.at"]), True),
        (near(["left", "right.at"]), False),
    ],
)
def test_what_spark_does_not_keep_may_change(spark, operator, kept):
    before, after = (described(spark, topic, operator) for topic in (clicks, shown))
    assert all(each.kept for each in compare_state(before, before))
    assert all(each.kept for each in compare_state(before, after)) == kept


@dataclass(frozen=True)
class Bill(Event):
    payer: str
    at: datetime
    sum: Annotated[Decimal, Precision(12, 2)] = Decimal("1.50")
    due: datetime = START
    seal: bytes = b"\x00\xff"
    tags: list[str] = field(default_factory=list)
    note: str | None = "none"


bills = Topic("bills", Bill, upcasts=(upcast(1, rename("name", to="payer")),))
KEPT = {"id": "string", "gone": "bigint", "name": "string", "at": "timestamp"}


def billed(spark, *given):
    written, types = lineages(bills), spark_schema(Bill)
    nullable = StructType([StructField(each.name, each.dataType) for each in types])
    rows = spark.createDataFrame([tuple(asdict(bill).values()) for bill in given], nullable)
    columns = {name: F.col(name).cast(types[name].dataType) for name in written}
    return rows.select(
        *(each.alias(name, metadata=written[name].to_metadata(name)) for name, each in columns.items())
    )


@pytest.mark.long
def test_what_came_later_goes_beside_a_struct_of_sparks_own_state(spark):
    """Of what was kept before it came, it is the default."""
    at_micros = at(1) + timedelta(microseconds=17)
    rows = billed(spark, Bill("ada", at(0), Decimal("2.25"), at_micros, b"\x01", ["x"], None, id="1"))
    pin = Pin(rows.schema, KEPT, room=True)
    kept = rows.select(F.struct(*pin.columns()).alias("kept"), *pin.beside())
    assert kept.schema["kept"].dataType.names == ["id", "gone", "payer", "at"]
    whole = kept.select(pin.whole(F.col("kept"), F.col(ADDED)).alias("e"))
    assert whole.select("e.*").collect() == rows.collect()
    old = kept.select(pin.whole(F.col("kept"), F.lit(None).cast("map<string,string>")).alias("e"))
    wanted = billed(spark, Bill("ada", at(0), id="1"))
    assert old.select("e.*").collect() == wanted.collect()


def test_a_struct_without_room_stays_as_it_was(spark):
    rows = billed(spark, Bill("ada", at(0), id="1"))
    pins = Pins({"table bills 0": {"fields": KEPT, "room": False}}, began=True)
    with pinning(pins):
        pin = pinned("table bills", rows.schema, streaming=True)
        assert pinned("table bills", rows.schema, streaming=True) is pin
    assert pins.taken == pins.before
    kept = rows.select(F.struct(*pin.columns()).alias("kept"), *pin.beside())
    assert kept.columns == ["kept"]
    found = kept.select(pin.whole(F.col("kept"), F.col("kept")).alias("e")).select("e.*")
    assert found.columns == ["id", "gone", "payer", "at"]
    assert Pins(began=True).pin("event", rows.schema).room is False


def test_rows_that_are_kept_need_a_default_for_a_field_that_came(spark):
    rows = billed(spark, Bill("ada", at(0), id="1"))
    kept = {name: type for name, type in KEPT.items() if name != "at"}
    with pytest.raises(FlowError, match="the table 'bills' has a new field 'at' without a default"):
        Pin(rows.schema, kept, room=True).refuse_required("the table 'bills'")
