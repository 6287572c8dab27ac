"""Results become messages that Python's codecs read as the events they are; what can't be is refused."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from uuid import UUID

import pytest
from pyspark.sql import functions as F
from tests.event_samples import Channel, Line, Money, Order, random_order
from tests.schema_directory import MemoryDirectory

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Table, Topic
from penstock.pipeline.observed import writer
from penstock.pipeline.one_to_one import gives_one_result
from penstock.process import keyed
from penstock.process.columns.names import DELETED
from penstock.process.wire.events import typed
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.messages import encoded, with_id
from penstock.schemas import NumberedSchema
from penstock.targets.kafka.lane import KafkaLanes

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
SOURCE = "struct<topic:string,partition:int,offset:bigint>"
KAFKA = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key:string,value:binary>>"
)


@dataclass(frozen=True)
class Alert(Event):
    card: str
    count: int
    share: float
    spent: Money
    channel: Channel
    at: datetime
    line: Line | None = None
    reason: str | None = None
    level: str = "high"


@dataclass(frozen=True)
class Late(Event):
    card: str
    delay: int
    at: datetime


ALERTS = Topic("alerts", Alert, key="card")
LATES = Topic("lates", Late, key="delay")
RESULT = "card string, count int, share float, spent decimal(10,1), channel string, at timestamp"
RESULT += f", _source {SOURCE}"


def results(spark, *changes, more="", schema=RESULT):
    """Results of the flow's function, one for each change of the first."""
    first = {
        "card": "c1",
        "count": 3,
        "share": 0.5,
        "spent": Decimal("1.5"),
        "channel": "web",
        "at": NOW,
        "_source": ("tx", 2, 17),
    }
    return spark.createDataFrame([first | change for change in changes or ({},)], schema + more).coalesce(1)


def headers_of(row):
    return {header.key: bytes(header.value).decode() for header in row.headers}


@pytest.fixture(scope="module")
def orders(spark):
    """Orders, and a frame of them."""
    rng, source = Random(5), Topic("orders", Order)
    made = [random_order(rng) for _ in range(100)]
    rows = [("orders", 0, at, NOW, b"k", source.codec().encode(each), None) for at, each in enumerate(made)]
    frame = typed(spark.createDataFrame(rows, KAFKA).coalesce(1), source, KnownSchemas()).cache()
    yield made, frame
    frame.unpersist()


@pytest.mark.parametrize("format", ["json", "avro", "json-schema", "protobuf"])
def test_python_reads_what_was_written(orders, format):
    directory = MemoryDirectory()
    events, frame = orders
    topic = Topic("copies", Order, key="count" if format == "avro" else "customer", format=format)
    codec = topic.codec(directory)
    codec.encode(events[0])
    schemas = (
        {} if format == "json" else {"copies": NumberedSchema(1, directory.written(topic.subject, 1).text)}
    )
    rows = encoded(frame, topic, flow="copy", schemas=schemas).collect()
    assert [codec.decode(bytes(row.value)) for row in rows] == events
    assert [bytes(row.key) for row in rows] == [topic.key_of(event) for event in events]


def test_results_of_a_partition_stay_together_whatever_was_looked_up(spark):
    """A batch that is repeated after a table has changed has other keys, and the same lanes."""
    place = [("tx", number % 4, number) for number in range(40)]
    lanes = []
    for again in ("first", "second"):
        rows = results(spark, *({"card": f"{again}{n}", "_source": at} for n, at in enumerate(place)))
        lanes.append(lanes_of(encoded(rows, ALERTS, flow="f")))
    assert lanes[0] == lanes[1]
    assert len(set(lanes[0].values())) == 3


def test_results_without_a_source_are_in_the_order_of_time_and_name_their_lane(spark):
    changes = [{"card": f"c{n % 5}", "at": NOW + timedelta(minutes=n * 7 % 40)} for n in range(40)]
    rows = results(spark, *changes).drop("_source")
    spread = KafkaLanes({}, "f", 1).spread(encoded(rows, ALERTS, flow="f", shuffled=True), 3)
    found = spread.withColumn("lane", F.spark_partition_id()).collect()
    times = {}
    for row in found:
        assert headers_of(row) == {"penstock.made-by": f"f lane/{row.lane}"}
        times.setdefault(row.lane, []).append(ALERTS.codec().decode(bytes(row.value)).at)
    assert len(found) == 40
    assert all(each == sorted(each) for each in times.values())


def lanes_of(rows):
    """The lane of each result, by what made it."""
    spread = KafkaLanes({}, "f", 1).spread(rows, 3).withColumn("lane", F.spark_partition_id())
    return {headers_of(row)["penstock.made-by"]: row.lane for row in spread.collect()}


def test_a_result_is_widened_filled_and_traced(spark):
    [row] = encoded(results(spark), ALERTS, flow="fraud.suspicious").collect()
    event = ALERTS.codec().decode(bytes(row.value))
    assert event == Alert("c1", 3, 0.5, Decimal("1.50"), Channel.WEB, NOW, id=event.id)
    assert (row.topic, bytes(row.key)) == ("alerts", b"c1")
    assert headers_of(row) == {"penstock.made-by": "fraud.suspicious tx/2/17"}
    assert list(json.loads(row.value)) == list(vars(event))


def test_a_session_in_another_zone_writes_the_same_times(spark):
    frame = results(spark)
    [expected] = encoded(frame, ALERTS, flow="f").collect()
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        [row] = encoded(frame, ALERTS, flow="f").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert json.loads(row.value)["at"] == "2026-03-01T12:30:00.000000Z"
    assert row == expected


def test_an_id_is_made_of_the_flow_the_source_and_the_row(spark):
    changes = [{}, {}, {"count": 4}, {"_source": ("tx", 2, 18)}, {"_source": None}]
    ids = [row.id for row in with_id(results(spark, *changes), "a").collect()]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4
    others = [
        with_id(results(spark), "b"),
        with_id(results(spark).select("_source", "at", "channel", "spent", "share", "count", "card"), "a"),
        results(spark).withColumn("id", F.lit("own")),
    ]
    other, reordered, own = (with_id(frame, "a").first().id for frame in others)
    assert other not in ids
    assert reordered == ids[0]
    assert own == "own"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.drop("card"), "no column 'card'"),
        (lambda frame: frame.withColumn("count", F.lit("x")), "'count' as string, Alert .* has bigint"),
        (lambda frame: frame.withColumn("spent", F.lit(1.5)), r"'spent' as double, .* decimal\(12,2\)"),
        (lambda frame: frame.withColumn("spent", F.col("spent").cast("decimal(22,2)")), "spent"),
        (lambda frame: frame.withColumn("at", F.col("at").cast("timestamp_ntz")), "timestamp_ntz"),
        (lambda frame: frame.withColumn("card", F.lit(None)), "'card' as void"),
        (lambda frame: frame.withColumn("extra", F.lit(1)), "a column 'extra'"),
        (lambda frame: frame.withColumn(DELETED, F.lit(True)), "only a table takes deletions"),
        (lambda frame: frame.withColumn("_side_output", F.lit(1)), "`_side_output` as int"),
        (lambda frame: frame.withColumn("line", F.struct(F.lit("p").alias("product"))), "'line' as struct"),
    ],
)
def test_what_can_not_be_written_is_refused_when_it_is_described(spark, change, says):
    with pytest.raises(FlowError, match=says):
        encoded(change(results(spark)), ALERTS, flow="f")


def test_a_topic_whose_messages_name_their_schema_needs_its_number(spark):
    with pytest.raises(FlowError, match="has no number"):
        encoded(results(spark), Topic("a", Alert, format="avro"), flow="f")


LINE = ", line struct<product:string,price:decimal(12,2),gift:boolean>"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"card": None}, "'card' is null"),
        ({"share": float("nan")}, "'share' is null or no double"),
        ({"channel": "phone"}, "'channel'"),
        ({"line": ("p", None, True)}, "'line' is null or no struct"),
        ({"_side_output": "nowhere"}, "flow 'f': no side output is called 'nowhere'"),
    ],
)
def test_a_row_that_has_no_place_in_its_topic_fails_loudly(spark, change, says):
    frame = results(spark, {"line": None, "_side_output": None} | change, more=LINE + ", _side_output string")
    with pytest.raises(Exception, match=says):
        encoded(frame, ALERTS, flow="f").collect()


def test_rows_with_a_side_output_go_to_its_topic(spark):
    frame = results(
        spark,
        {"_side_output": None, "delay": None, "line": ("p", Decimal("2.00"), True)},
        {"_side_output": "lates", "delay": 5, "count": None, "line": None},
        more=LINE + ", _side_output string, delay int",
    )
    first, second = encoded(frame, ALERTS, flow="f", side_outputs={"lates": LATES}).collect()
    assert ALERTS.codec().decode(bytes(first.value)).line == Line("p", Decimal(2), True)
    late = LATES.codec().decode(bytes(second.value))
    assert late == Late("c1", 5, NOW, id=late.id)
    assert (first.topic, second.topic, bytes(second.key)) == ("alerts", "lates", b"5")
    with pytest.raises(FlowError, match="'delay'"):
        encoded(frame.drop("delay"), ALERTS, flow="f", side_outputs={"lates": LATES})


@dataclass(frozen=True)
class Balance(Event):
    account: UUID
    amount: Money
    at: datetime


def test_a_deleted_row_of_a_table_is_a_tombstone(spark):
    table, account = Table("balances", Balance, key="account"), UUID(int=5)
    rows = [
        (str(account), Decimal(1), NOW, "b1", False),
        (str(account), None, None, None, True),
        (str(account), Decimal(2), NOW, "b2", None),
    ]
    schema = f"account string, amount decimal(12,2), at timestamp, id string, {DELETED} boolean"
    frame = spark.createDataFrame(rows, schema).coalesce(1)
    first, gone, last = encoded(frame, table, flow="f").collect()
    assert table.codec().decode(bytes(first.value)) == Balance(account, Decimal(1), NOW, id="b1")
    assert (bytes(gone.key), gone.value) == (str(account).encode(), None)
    assert last.value is not None
    assert headers_of(gone) == {"penstock.made-by": "f"}
    keyless = spark.createDataFrame([(None, None, None, None, True)], schema)
    with pytest.raises(Exception, match="'account' is null"):
        encoded(keyless, table, flow="f").collect()


def test_the_place_is_the_id_where_an_event_has_one_result(spark):
    """Otherwise what the row holds belongs to it: one event may have several."""
    rows = spark.createDataFrame([("a", 0, 0, NOW, b"k", b"{}", None)], KAFKA)
    events = typed(rows, Topic("a", Alert, key="card"), KnownSchemas())
    recent = keyed.recent(by="card", time="at", within="1 minute")
    one = (
        events,
        events.where("count > 1").withColumn("share", F.lit(1.0)).drop("id"),
        events.transform(recent).select("event.card", keyed.count().alias("count"), "_source"),
    )
    several = (
        events.union(events),
        events.withColumn("card", F.explode(F.array("card", "channel"))),
        events.join(events.select("card").alias("other"), "card"),
        events.groupBy("card").agg(F.max("_source").alias("_source")),
        events.select("*", F.window("at", "10 minutes", "5 minutes")),
    )
    assert [gives_one_result(each) for each in (*one, *several)] == [True] * 3 + [False] * 5
    changed = (
        with_id(results(spark, {"spent": Decimal(n)}), "a", one_to_one=True).first().id for n in (1, 2)
    )
    assert len({*changed}) == 1


def test_a_made_id_knows_microseconds_apart(spark):
    times = (datetime(2026, 1, 1, microsecond=n, tzinfo=UTC) for n in (1, 2))
    ids = {with_id(results(spark, {"at": at}), "a").first().id for at in times}
    assert len(ids) == 2


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ("shop.bill sales/3/12", "0 shop.bill sales/3"),
        ("shop.bill@2 sales/3/12", "0 shop.bill sales/3"),
        ("team:shop.bill@2.1-a sales/3/12", "0 team:shop.bill sales/3"),
        ("team:shop.counts lane/1", "0 team:shop.counts lane/1"),
        ("Team:shop.bill sales/3/12", "0"),  # no namespace is spelled so
        ("shop.bill@ sales/3/12", "0"),
    ],
)
def test_a_writer_is_the_flow_in_any_version(spark, made, name):
    """A new version goes on with the watermark of the one before."""
    header = f"array(named_struct('key', 'penstock.made-by', 'value', cast('{made}' as binary)))"
    source = F.expr(f"named_struct('partition', 0, 'headers', {header})")
    found = spark.range(1).select(source.alias("_source")).select(writer().alias("name")).first()
    assert found.name == name
