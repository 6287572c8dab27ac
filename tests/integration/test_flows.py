"""Flows at work: results, side outputs, dead letters, positions, and what is refused before it does harm."""

import shutil
import time
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import psycopg
import pytest
from pyspark.sql import functions as F
from tests.integration.shop import Receipt, Sale, make_sales, receipts, sales, shop, suspects
from tests.integration.test_sink_kafka import read

from penstock.errors import FlowError, LedgerError
from penstock.events import Event, Precision
from penstock.log import Broker, Consumer, Groups, Producer, Topic, apply
from penstock.log.dead_letters import DeadLetter
from penstock.pipeline import Pipeline, ProgressStore, Runner, forget, verify
from penstock.process import windows
from penstock.process.windows import agg
from penstock.registry import Registry
from penstock.schemas import default, upcast
from penstock.settings import reveal

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Tally(Event):
    customer: str
    sales: int
    at: datetime


@dataclass(frozen=True)
class Hour(Event, time="end"):
    customer: str
    start: datetime
    end: datetime
    kind: str
    rows: int
    spent: Annotated[Decimal, Precision(22, 2)]


@pytest.fixture
def place(settings, tmp_path):
    """Settings with a data folder of their own, so that checkpoints start empty."""
    return replace(settings, data=tmp_path)


def run_once(pipeline, settings, spark, **options):
    with Runner(pipeline, settings, spark=spark, once=True, **options) as runner:
        assert runner.wait(120)


def send(settings, topic, events):
    with Producer(settings) as producer:
        producer.send_all(topic, events)


def copying(name, source, target, change=lambda rows: rows, **options):
    """A pipeline of one flow that copies a topic."""
    pipeline = Pipeline(name)

    @pipeline.flow(reads={"rows": source}, writes=target, **options)
    def copy(rows):
        return change(rows)

    return pipeline


@pytest.fixture
def pair(unique, settings):
    """A topic of sales with some in it, and one for the results."""
    source = Topic(f"from.{unique}", Sale, key="customer", partitions=2)
    apply([source], Broker(settings))
    send(settings, source, make_sales(100, seed=1))
    return source, Topic(f"to.{unique}", Sale, key="customer")


@pytest.mark.timeout(300)
def test_a_pipeline_end_to_end(place, spark):
    apply([sales], Broker(place))
    made = make_sales(300, seed=5)
    send(place, sales, made)
    with Producer(place) as producer:
        producer.send_bytes(sales.name, b"c1", b"no sale", [("trace", b"7")])
    run_once(shop, place, spark)
    run_once(shop, place, spark)  # the flows behind the receipts see them only now

    with Consumer(receipts, place) as consumer:
        found = {record.event.customer: record for record in consumer.records(idle="500 ms")}
    small = [sale for sale in made if sale.amount <= 900]
    some = found[small[-1].customer]
    assert dict(some.headers)["penstock.made-by"].startswith(b"shop.bill shop.sales/")
    with Consumer(suspects, place) as consumer:
        assert len(list(consumer.records(idle="500 ms"))) == len(made) - len(small)
    letter = DeadLetter.from_message(read(place, "shop.sales.dead-letters")[0])
    assert (letter.topic, letter.value, letter.headers[0]) == ("shop.sales", b"no sale", ("trace", b"7"))
    assert letter.offset >= 0
    with psycopg.connect(reveal(place.postgres)) as database:
        assert database.execute("select count(*) from shop_receipts").fetchone() == (len(small),)
        kept = dict(database.execute("select customer, amount from shop_latest").fetchall())
    assert kept == {sale.customer: sale.amount for sale in small}

    verifications = verify(shop, place, spark)
    assert [verification.flow for verification in verifications if not verification.ok] == []
    assert {verification.flow: verification.found for verification in verifications}["dead-letters"] == 1
    assert sum(lag.events for lag in Groups(place).lag("penstock.shop.bill")) == 0
    store = ProgressStore(place.data / "progress.db")
    assert sum(batch.rows for batch in store.recent("shop", "bill")) == 301
    store.close()


@pytest.mark.timeout(200)
def test_a_lost_checkpoint_is_refused_and_a_flow_without_state_goes_on_from_the_ledger(
    place, spark, pair, unique
):
    source, target = pair
    pipeline = copying(f"p{unique}", source, target)
    run_once(pipeline, place, spark)
    shutil.rmtree(Path(place.flows) / pipeline.name / "copy")
    send(place, source, make_sales(50, seed=2, start=500))
    with pytest.raises(LedgerError, match=r"checkpoint .* is empty"):
        run_once(pipeline, place, spark)
    assert len(read(place, target.name)) == 100
    run_once(pipeline, place, spark, from_ledger=True)
    assert len(read(place, target.name)) == 150
    assert len({message.key() + message.value() for message in read(place, target.name)}) == 150


@dataclass(frozen=True)
class Old(Event, type="pet"):
    name: str
    at: datetime


@dataclass(frozen=True)
class New(Event, type="pet"):
    name: str
    at: datetime
    kind: str = "cat"


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_schema_that_appears_in_mid_stream_is_fetched_and_nothing_is_lost(place, spark, unique):
    old = Topic(f"pets.{unique}", Old, key="name", format="avro")
    new = Topic(f"pets.{unique}", New, key="name", format="avro")
    target = Topic(f"out.{unique}", Old, key="name")
    pipeline = copying(f"p{unique}", old, target)
    apply([old], Broker(place))
    said = []
    with Registry(place) as registry:
        with Producer(place, schemas=registry) as producer:
            producer.send_all(old, [Old(f"a{n}", NOW) for n in range(10)])
        with Runner(pipeline, place, spark=spark, report=lambda flow, what: said.append(what)) as runner:
            wait_for(place, target, 10)
            with Producer(place, schemas=registry) as producer:
                producer.send_all(new, [New(f"b{n}", NOW, "dog") for n in range(10)])
                producer.send_all(old, [Old(f"c{n}", NOW) for n in range(10)])
                for number in range(40):  # anybody may make up numbers; each of its own
                    producer.send_bytes(old.name, b"d", b"\0\0\0\x99" + bytes([number]) + b"what is this")
            wait_for(place, target, 30)
            wait_for(place, Topic(f"{old.name}.dead-letters", Old), 40)
            assert runner.runs["copy"].restarts == 0
    assert 1 <= sum("is new" in each for each in said) <= 4  # batches may begin anywhere among them
    names = sorted(message.key() for message in read(place, target.name))
    assert names == sorted(f"{letter}{n}".encode() for letter in "abc" for n in range(10))


def wait_for(settings, topic, count):
    deadline = time.monotonic() + 90
    while len(found := read(settings, topic.name)) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} in {topic.name}"
        time.sleep(0.5)


@pytest.mark.timeout(200)
def test_state_goes_on_from_a_batch_that_was_written_but_not_committed(place, spark, pair, unique):
    """Its results are not written again, but without computing it the state would lack its events."""
    source, _ = pair
    target = Topic(f"counts.{unique}", Tally, key="customer")

    def count(rows):
        return rows.groupBy("customer").agg(F.count("*").alias("sales"), F.max("at").alias("at"))

    pipeline = copying(f"counts-{unique}", source, target, count)
    run_once(pipeline, place, spark)
    commits = place.data / "flows" / pipeline.name / "copy" / "checkpoint" / "commits"
    (commits / "0").unlink()
    (commits / ".0.crc").unlink(missing_ok=True)
    run_once(pipeline, place, spark)
    send(place, source, make_sales(100, seed=2, start=100))
    run_once(pipeline, place, spark)
    counted = Counter(each.customer for each in [*make_sales(100, seed=1), *make_sales(100, seed=2)])
    with Consumer(target, place) as consumer:
        emitted = [record.event for record in consumer.records(idle="500 ms")]
    assert {
        each.customer: max(e.sales for e in emitted if e.customer == each.customer) for each in emitted
    } == counted
    assert len({each.id for each in emitted}) == len(emitted)


def test_less_than_exactly_once_on_request(place, spark, pair, unique):
    source, target = pair
    for guarantee in ("at-least-once", "at-most-once"):
        name = guarantee.replace("-", "")
        other = replace(target, name=f"{target.name}.{name}")
        run_once(copying(f"{name}{unique}", source, other, guarantee=guarantee), place, spark)
        assert len(read(place, other.name)) == 100


@pytest.mark.timeout(200)
def test_a_new_version_goes_on_where_the_one_before_was(place, spark, pair, unique):
    source, target = pair
    run_once(copying(f"p{unique}", source, target), place, spark)
    send(place, source, make_sales(50, seed=2))
    again = copying(f"p{unique}", source, target, version="2")
    run_once(again, place, spark)
    made = [
        dict(message.headers())["penstock.made-by"].split()[0].decode()
        for message in read(place, target.name)
    ]
    assert Counter(made) == {f"p{unique}.copy": 100, f"p{unique}.copy@2": 50}
    assert all(found.ok for found in verify(again, place, spark))


@pytest.mark.long
@pytest.mark.timeout(200)
def test_two_teams_with_one_name_for_a_pipeline_do_not_meet(place, spark, pair, unique):
    """They share the broker and the folder of checkpoints, and even the topic of results."""
    source, target = pair
    teams = [replace(place, namespace=name) for name in ("red", "blue")]
    pipeline = copying(f"p{unique}", source, target)
    for team in teams:
        run_once(pipeline, team, spark)
    assert len(read(place, target.name)) == 200
    for team in teams:
        assert [found.found for found in verify(pipeline, team, spark) if found.ok] == [100, 0]
        assert sum(lag.events for lag in Groups(team).lag(f"penstock:{team.namespace}.p{unique}.copy")) == 0
    removed = forget(spark, teams[0], pipeline.name, "copy")
    assert f"topic _penstock.red.ledger.p{unique}.copy" in removed
    run_once(pipeline, teams[1], spark)
    assert len(read(place, target.name)) == 200


@pytest.mark.timeout(200)
def test_a_replay_writes_once_what_the_log_holds(place, spark, pair, unique):
    source, target = pair
    pipeline = copying(f"p{unique}", source, target)
    run_once(pipeline, place, spark, mode="replay")
    run_once(pipeline, place, spark, mode="replay")
    assert len(read(place, target.name)) == 100
    with pytest.raises(LedgerError):
        run_once(pipeline, place, spark)


@pytest.mark.timeout(200)
def test_a_flow_whose_state_has_changed_is_refused(place, spark, pair, unique):
    source, _ = pair
    count = Topic(f"count.{unique}", Receipt, key="customer")

    def counting(*keys):
        def change(rows):
            summed = rows.groupBy(*keys).agg(F.max("amount").alias("amount"), F.max("at").alias("at"))
            return summed.select("customer", "amount", "at", F.lit(0).cast("decimal(12,2)").alias("tax"))

        return copying(f"p{unique}", source, count, change)

    run_once(counting("customer"), place, spark)
    with pytest.raises(FlowError, match=r"state of step 1 \(Aggregate\): lost, .*id string"):
        run_once(counting("customer", "id"), place, spark)


@pytest.mark.long
def test_windows_that_have_changed_are_refused(place, spark, pair, unique):
    source, _ = pair
    target = Topic(f"hours.{unique}", Hour, key="customer")

    def counted(buckets):
        hours = windows.tumbling("1 hour", time="at", by="customer", watermark="1 second", buckets=buckets)
        return lambda rows: rows.transform(hours.agg(spent=agg.sum("amount")))

    run_once(copying(f"hours-{unique}", source, target, counted(2)), place, spark)
    with pytest.raises(FlowError, match="in 2 buckets, and would be in 3 buckets"):
        run_once(copying(f"hours-{unique}", source, target, counted(3)), place, spark)


def test_what_a_flow_returns_is_checked_before_it_runs(place, spark, pair, unique):
    source, target = pair
    wrong = {
        "customer": lambda rows: rows.drop("customer"),
        "amount": lambda rows: rows.withColumn("amount", F.col("amount").cast("string")),
        "surplus": lambda rows: rows.withColumn("surplus", F.lit(1)),
        "nothing": lambda rows: rows.select("nothing"),
        "a str": lambda rows: "rows",
    }
    for number, (message, change) in enumerate(wrong.items()):
        with pytest.raises(FlowError, match=message):
            run_once(copying(f"p{unique}{number}", source, target, change), place, spark)


def test_what_real_time_cannot_do_is_refused_with_the_alternative(place, spark, pair, unique):
    source, target = pair
    shout = F.udf(str.upper)
    cases = {
        "runs Python": lambda rows: rows.withColumn("customer", shout("customer")),
        "joins two streams": lambda rows: rows.join(rows.select("customer"), "customer"),
        "drops duplicates": lambda rows: rows.dropDuplicates(["id"]),
        "reads '.*' twice": lambda rows: rows.union(rows),
        "two stateful steps": lambda rows: rows.groupBy("customer").count().groupBy("count").count(),
    }
    for number, (message, change) in enumerate(cases.items()):
        pipeline = copying(
            f"p{unique}{number}", source, target, lambda rows, c=change: as_sale(c(rows)), mode="realtime"
        )
        with (
            pytest.raises(FlowError, match=message) as refused,
            Runner(pipeline, place, spark=spark) as runner,
        ):
            runner.wait(60)
        assert "stream mode" in str(refused.value)


def as_sale(rows):
    """Whatever it was, as the columns of a sale."""
    customer = F.col("customer") if "customer" in rows.columns else F.lit("x")
    return rows.select(
        customer.alias("customer"), F.lit(1).cast("decimal(12,2)").alias("amount"), F.lit(NOW).alias("at")
    )


def test_upcasts_run_inside_spark(place, spark, unique):
    old = Topic(f"pets.{unique}", Old, key="name", format="avro")
    new = Topic(
        f"pets.{unique}", New, key="name", format="avro", upcasts=(upcast(1, default("kind", "dog")),)
    )
    target = Topic(f"out.{unique}", New, key="name")
    apply([old], Broker(place))
    with Registry(place) as registry, Producer(place, schemas=registry) as producer:
        producer.send(old, Old("a", NOW))
    run_once(copying(f"p{unique}", new, target), place, spark)
    with Consumer(target, place) as consumer:
        assert [record.event.kind for record in consumer.records(idle="500 ms")] == ["dog"]
