"""What verification believes: other formats, strange schemas, events that wait, windows in tables."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import confluent_kafka
import psycopg
import pytest
from pyspark.sql import functions as F
from tests.integration.shop import Sale
from tests.integration.test_flows import run_once, send

from penstock.events import Event
from penstock.log import Broker, Producer, Table, Topic, apply
from penstock.pipeline import Pipeline, verify
from penstock.process import joins, windows
from penstock.process.windows import Late, agg
from penstock.settings import reveal
from penstock.targets import PostgresTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = ("customer", "start", "end", "kind", "rows", "spent")


@dataclass(frozen=True)
class Tier(Event):
    customer: str
    name: str
    at: datetime


@dataclass(frozen=True)
class Ranked(Event):
    customer: str
    tier: str | None
    at: datetime


def sale(number, seconds):
    customer = f"c{number % 3}"
    return Sale(customer, Decimal(number), NOON + timedelta(seconds=seconds), id=f"s{number}")


@dataclass(frozen=True)
class Shop:
    """A pipeline of flows that verification once accused, or fell over."""

    unique: str

    @property
    def pipeline(self):
        made = Pipeline(f"v{self.unique}")
        by_minute = windows.tumbling(
            "1 minute",
            time="at",
            by="customer",
            watermark="1 second",
            late=Late.refire(within="2 minutes").then(self.late),
            buckets=2,
        )

        @made.flow(reads={"sales": self.sales}, writes=self.encoded)
        def to_avro(sales):
            return sales

        @made.flow(reads={"sales": self.encoded}, writes=self.copies)
        def from_avro(sales):
            return sales

        @made.flow(reads={"sales": self.sales, "tiers": self.tiers}, writes=self.ranked)
        def rank(sales, tiers):
            then = joins.as_of(
                tiers, on="customer", time="at", since="at", history="1 day", watermark="1 second", buckets=2
            )
            return sales.transform(then).selectExpr("customer", "row.name as tier", "at", "_source")

        @made.flow(reads={"sales": self.sales}, writes=self.every, side_outputs=(self.late,))
        def windows_appended(sales):
            return sales.transform(by_minute.agg(spent=agg.sum("amount")))

        @made.flow(reads={"sales": self.sales}, writes=self.last, side_outputs=(self.late,))
        def windows_kept(sales):
            return sales.transform(by_minute.agg(spent=agg.sum("amount")))

        return made

    @property
    def sales(self):
        return Topic(f"sales.{self.unique}", Sale, key="customer")

    @property
    def encoded(self):
        return Topic(f"avro.{self.unique}", Sale, key="customer", format="avro")

    @property
    def copies(self):
        return Topic(f"copies.{self.unique}", Sale, key="customer")

    @property
    def tiers(self):
        return Table(f"tiers.{self.unique}", Tier, key="customer")

    @property
    def ranked(self):
        return Topic(f"ranked.{self.unique}", Ranked, key="customer")

    @property
    def late(self):
        return Topic(f"late.{self.unique}", Sale, key="customer")

    @property
    def every(self):
        return PostgresTable(f"every_{self.unique}", columns=WINDOW)

    @property
    def last(self):
        keys = ("customer", "start")
        return PostgresTable(f"last_{self.unique}", key=keys, write="upsert", columns=WINDOW)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_what_is_right_is_believed_and_what_is_wrong_is_not(settings, spark, unique, tmp_path):
    place, shop = replace(settings, data=tmp_path), Shop(unique)
    apply([shop.sales, shop.tiers, shop.encoded], Broker(place))
    send(place, shop.tiers, [Tier("c0", "gold", NOON - timedelta(hours=1))])
    send(place, shop.sales, [sale(number, number) for number in range(0, 200, 2)])
    run_once(shop.pipeline, place, spark)
    # Of these, some correct a window that was emitted, some come too late for it, some only wait.
    rest = [sale(number, number) for number in (91, 131, 1, 3, 5, 301)]
    send(place, shop.sales, rest)
    with Producer(place) as producer:
        producer.send_bytes(shop.encoded.name, b"c1", b"\0\0\0\x99\x99what is this")
    run_once(shop.pipeline, place, spark)  # of what is made Avro now, the copies may have to wait
    said = []
    verifications = {
        each.flow: each
        for each in verify(shop.pipeline, place, spark, report=lambda flow, what: said.append((flow, what)))
    }
    assert [each for each in verifications.values() if not each.ok] == []
    assert (verifications["to_avro"].found, verifications["from_avro"].found >= 100) == (106, True)
    assert verifications["dead-letters"].found == 1
    ranked = verifications["rank"]
    assert (ranked.found, ranked.missing, ranked.waiting) == (ranked.expected, 0, 106 - ranked.found)
    assert 0 < ranked.waiting < 106
    for name in ("windows_appended", "windows_kept"):
        rows = verifications[name].windows
        assert (rows.taken, rows.exact) == (106, True)
        assert rows.emitted > 100 > rows.sent > 0
        assert rows.waiting > 0
    assert ("rank", "ok") in said
    with psycopg.connect(reveal(place.postgres), autocommit=True) as database:
        corrected = database.execute(f"select count(*) from every_{unique} where kind = 'corrected'")
        assert corrected.fetchone()[0] > 0
        database.execute(f"delete from last_{unique} where customer = 'c0'")
    alone = Pipeline(shop.pipeline.name)
    alone.flows["windows_kept"] = shop.pipeline.flows["windows_kept"]
    verification, _ = verify(alone, place, spark)
    assert not verification.ok
    assert verification.missing > 10


@dataclass(frozen=True)
class Sold(Event, time="start"):
    customer: str
    start: datetime
    sales: int


@pytest.mark.long
@pytest.mark.timeout(240)
def test_windows_that_are_not_over_wait_whatever_columns_the_flow_keeps(settings, spark, unique, tmp_path):
    place, made = replace(settings, data=tmp_path), Pipeline(f"w{unique}")
    sales = Topic(f"sold.{unique}", Sale, key="customer")
    by_minute = windows.tumbling("1 minute", time="at", by="customer", watermark="10 seconds")

    @made.flow(
        reads={"sales": sales}, writes=Topic(f"minutes.{unique}", Sold, key="customer"), output="append"
    )
    def by_start(sales):
        counted = sales.transform(by_minute.agg(F.count("*").alias("sales")))
        return counted.select("customer", "start", "sales")

    apply([sales], Broker(place))
    send(place, sales, [sale(number, number) for number in range(150)])
    run_once(made, place, spark)
    verification, _ = verify(made, place, spark)
    assert verification.ok, verification
    assert (verification.found, verification.waiting) == (6, 3)
    write_again(place, made.flows["by_start"].writes.name)
    verification, _ = verify(made, place, spark)
    assert (verification.ok, verification.missing, verification.repeated) == (False, 0, 1)


def write_again(settings, topic):
    """Write the first message of a topic once more, headers and all, as no flow may."""
    own = {"group.id": topic, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    reader = confluent_kafka.Consumer(settings.client() | own)
    reader.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    message = reader.poll(30)
    reader.close()
    writer = confluent_kafka.Producer(settings.client())
    writer.produce(topic, message.value(), message.key(), headers=message.headers())
    assert writer.flush(30) == 0
