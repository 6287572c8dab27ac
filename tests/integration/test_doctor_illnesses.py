"""Illnesses that are caused for real, in flows on Spark and in the log: the doctor finds each of them.

What is written down here with PENSTOCK_RECORD is what the unit tests read.
"""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import confluent_kafka
import psycopg
import pytest
from pyspark.sql import functions as F
from tests.integration.ward import Ward, make, now, send

from penstock.events import Event
from penstock.log import Broker, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.process import windows
from penstock.process.windows import Watermark
from penstock.targets import PostgresTable

COUNTED = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
pytestmark = [pytest.mark.long, pytest.mark.timeout(280)]


@dataclass(frozen=True)
class Visit(Event):
    user: str
    at: datetime
    page: str = "/"


@dataclass(frozen=True)
class Count(Event, time="end"):
    user: str
    start: datetime
    end: datetime
    kind: str
    rows: int


@dataclass(frozen=True)
class Total(Event):
    user: str
    rows: int
    at: datetime


@pytest.fixture
def ward(settings, tmp_path, unique):
    return Ward(replace(settings, data=tmp_path), unique)


def topic(ward, name, cls=Visit, partitions=2):
    made = Topic(f"{name}.{ward.mark}", cls, key="user", partitions=partitions)
    apply([made], Broker(ward.settings))
    return made


@contextmanager
def traffic(ward, *topics, every=0.5, of=lambda number: f"u{number % 50}", size=40):
    """Send visits to topics all the while, dated now."""
    ending = threading.Event()

    def sending():
        number = 0
        with Producer(ward.settings) as producer:
            while not ending.wait(every):
                for each in topics:
                    producer.send_all(
                        each,
                        [Visit(of(n), now(), id=f"{each.name}{n}") for n in range(number, number + size)],
                    )
                number += size

    thread = threading.Thread(target=sending, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(20)


@contextmanager
def running(ward, pipeline, spark):
    with Runner(pipeline, ward.settings, spark=spark, report=lambda *_: None) as runner:
        yield runner


def until(ward, wanted, seconds, **options):
    """Look until all that is wanted is found, or the time is up."""
    deadline = time.monotonic() + seconds
    while True:
        found = ward.diagnosis(**options)
        if wanted <= set(found) or time.monotonic() > deadline:
            return found
        time.sleep(3)


def test_a_slow_function_a_growing_state_and_a_healthy_flow(ward, spark):
    """One flow sleeps for each row, one keeps every key for ever, one is well.

    Spark counts the rows of state, which Penstock leaves out otherwise.
    """
    spark.conf.set(COUNTED, "true")
    pipeline, visits = Pipeline(f"busy{ward.mark}"), topic(ward, "busy")
    copies, totals, slowly = (topic(ward, name, cls, 1) for name, cls in
                              (("copies", Visit), ("totals", Total), ("slowly", Visit)))  # fmt: skip

    @F.udf("string")
    def dawdle(page):
        time.sleep(0.1)
        return page

    @pipeline.flow(reads={"visits": visits}, writes=slowly, options={"maxOffsetsPerTrigger": "40"})
    def slow(visits):
        return visits.withColumn("page", dawdle("page"))

    @pipeline.flow(reads={"visits": visits}, writes=totals, checkpoint_interval="5 seconds")
    def keeps(visits):
        return visits.groupBy("user").agg(F.count("*").cast("long").alias("rows"), F.max("at").alias("at"))

    @pipeline.flow(reads={"visits": visits}, writes=copies, checkpoint_interval="3 seconds")
    def well(visits):
        return visits

    wanted = {("lag.growing", f"busy.{name}") for name in ("slow",)} | {("state.growing", "busy.keeps")}
    with running(ward, pipeline, spark), traffic(ward, visits, of=lambda n: f"u{n}"):
        time.sleep(75)
        found = until(ward, wanted, 60, record="busy")
    spark.conf.set(COUNTED, "false")
    assert wanted <= set(found), found
    assert [each for each in found if each[1] == "busy.well"] == []
    lag = found["lag.growing", "busy.slow"]
    assert lag.evidence["behind_now"] > lag.evidence["behind_before"]
    assert lag.evidence["share_source"] > 0.5
    state = found["state.growing", "busy.keeps"]
    assert state.evidence["rows_now"] > state.evidence["rows_before"] > 0
    assert state.evidence["watermark"] == "none"


def test_late_events_a_quiet_writer_and_one_from_the_future(ward, spark):
    """Three windows: one gets old events, one waits for a partition that is quiet, one is dated ahead."""
    pipeline = Pipeline(f"times{ward.mark}")
    reads = {name: topic(ward, name) for name in ("late", "quiet", "ahead")}
    waits = {"late": Watermark("2 seconds"), "quiet": Watermark("2 seconds", idle="10 minutes"),
             "ahead": Watermark("2 seconds")}  # fmt: skip

    def counting(name):
        ten = windows.tumbling("10 seconds", time="at", by="user", watermark=waits[name])
        writes = topic(ward, f"{name}-counts", Count, 1)

        def count(visits):
            return visits.transform(ten.agg(F.count("*").alias("rows")))

        count.__name__ = name
        pipeline.flow(reads={"visits": reads[name]}, writes=writes, output="append")(count)

    for name in reads:
        counting(name)
    with running(ward, pipeline, spark):
        send(ward.settings, reads["quiet"], [Visit(f"u{n}", now()) for n in range(50)])
        with traffic(ward, reads["late"], reads["ahead"]), one_partition(ward, reads["quiet"]):
            time.sleep(25)
            old = [Visit(f"u{n}", now() - timedelta(minutes=2)) for n in range(30)]
            send(ward.settings, reads["late"], old)
            tomorrow = [Visit(f"u{n}", now() + timedelta(days=1)) for n in range(50)]
            send(ward.settings, reads["ahead"], tomorrow)
            time.sleep(40)
            send(ward.settings, reads["late"], old)  # among the last records again
            time.sleep(6)
            wanted = {("time.late", "times.late"), ("watermark.stuck", "times.quiet"),
                      ("watermark.stuck", "times.ahead")}  # fmt: skip
            found = until(ward, wanted, 60, record="times")
    assert wanted <= set(found), found
    late = found["time.late", "times.late"]
    assert late.evidence["late"] >= 30
    assert "minute" in late.evidence["suggested_delay"]
    assert found["watermark.stuck", "times.ahead"].evidence["ahead_seconds"] > 80_000
    assert "quiet" in found["watermark.stuck", "times.quiet"].cause


@contextmanager
def one_partition(ward, written):
    """Send visits to the first partition only."""
    ending = threading.Event()

    def sending():
        client = confluent_kafka.Producer({"bootstrap.servers": ward.settings.kafka["bootstrap.servers"]})
        codec = written.codec()
        while not ending.wait(0.5):
            client.produce(written.name, codec.encode(Visit("u0", now())), b"u0", partition=0)
            client.flush(5)

    thread = threading.Thread(target=sending, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join(10)


def test_poison_a_slow_target_and_one_that_is_away(ward, spark):
    """One flow divides by zero, one writes a table that takes six seconds, one a database that is down."""
    pipeline, visits = Pipeline(f"hurt{ward.mark}"), topic(ward, "hurt")
    table, away = f"slow_{ward.mark}", PostgresTable("nowhere", dsn="postgresql://127.0.0.1:9/none")

    @pipeline.flow(reads={"visits": visits}, writes=topic(ward, "divided", Total, 1))
    def divides(visits):
        zero = (F.col("page") != F.lit("poison")).cast("int")
        return visits.select("id", "user", "at", (F.lit(1) / zero).cast("long").alias("rows"))

    @pipeline.flow(reads={"visits": visits}, writes=PostgresTable(table))
    def drips(visits):
        return visits

    @pipeline.flow(reads={"visits": visits}, writes=away)
    def waits(visits):
        return visits

    with psycopg.connect(ward.settings.dsn().value, autocommit=True) as database:
        database.execute(
            f'create table {table} (id text primary key, "user" text, at timestamptz, page text)'
        )
        database.execute(
            f"create function {table}() returns trigger language plpgsql as "
            "'begin perform pg_sleep(6); return null; end'"
        )
        database.execute(
            f"create trigger slow before insert on {table} for each statement execute function {table}()"
        )
    wanted = {("records.poison", "hurt.divides"), ("target.behind", "hurt.drips"),
              ("target.behind", "hurt.waits")}  # fmt: skip
    with running(ward, pipeline, spark), traffic(ward, visits):
        time.sleep(15)
        send(ward.settings, visits, [Visit("u1", now(), "poison")])
        time.sleep(20)
        found = until(ward, wanted, 80, record="hurt")
    assert wanted <= set(found), found
    assert found["records.poison", "hurt.divides"].evidence["failures"] >= 2
    assert found["target.behind", "hurt.drips"].evidence["sink_seconds"] > 5
    assert found["target.behind", "hurt.waits"].severity == "error"


def test_results_of_a_batch_that_was_not_finished_are_duplicates(ward, spark):
    """A flow that guarantees at-least-once loses the last commit of its checkpoint, as one that is killed."""
    pipeline, visits = Pipeline(f"twice{ward.mark}"), topic(ward, "twice", partitions=1)
    copies = topic(ward, "copies", partitions=1)

    @pipeline.flow(reads={"visits": visits}, writes=copies, guarantee="at-least-once")
    def copy(visits):
        return visits

    send(ward.settings, visits, [Visit(f"u{n}", now(), id=f"v{n}") for n in range(40)])
    for _ in range(2):
        with Runner(pipeline, ward.settings, spark=spark, once=True) as runner:
            assert runner.wait(120)
        done = sorted(ward.settings.data.rglob("commits/[0-9]*"), key=lambda path: int(path.name))
        for path in done:
            path.unlink()
    found = ward.diagnosis(record="twice")
    assert set(found) == {("output.duplicates", "copies.")}
    assert found["output.duplicates", "copies."].evidence["duplicates"] == 40
    assert found["output.duplicates", "copies."].evidence["guarantee"] == "at-least-once"


def test_illnesses_of_the_log(ward, settings):
    """A hanging transaction, a group that is gone, a storm, a slot of nobody, changed schemas, settings."""
    servers = {"bootstrap.servers": settings.kafka["bootstrap.servers"]}
    hanging, left = make(settings, f"hanging.{ward.mark}", 1), make(settings, f"left.{ward.mark}", 1)
    writer = confluent_kafka.Producer(
        servers | {"transactional.id": f"writer.{ward.mark}", "transaction.timeout.ms": 600_000}
    )
    writer.init_transactions(20)
    writer.begin_transaction()
    writer.produce(hanging, b"half")
    writer.flush(10)
    leave_behind(servers, left, f"left.{ward.mark}")
    storm(servers, left, f"storm.{ward.mark}")
    renamed = Topic(f"renamed.{ward.mark}", Visit, key="user")
    apply([renamed], Broker(settings))
    changed(settings, renamed)
    make(settings, f"strict.{ward.mark}", 1, min_insync_replicas="2")
    slot = unread_slot(settings, ward.mark)
    try:
        time.sleep(60)
        wanted = {
            ("transactions.stuck", "writer."),
            ("lag.stopped", "left."),
            ("group.rebalancing", "storm."),
            ("schema.missing-events", "renamed."),
            ("settings.contradiction", "strict."),
            ("capture.slot", f"postgres/{slot.replace(ward.mark, '')}"),
        }
        found = until(ward, wanted, 40, topics=(renamed,), record="log")
    finally:
        with psycopg.connect(settings.dsn().value, autocommit=True) as database:
            database.execute("select pg_drop_replication_slot(%s)", [slot])
        writer.abort_transaction(20)
    assert wanted <= set(found), found
    held = found["transactions.stuck", "writer."]
    assert held.evidence["topic"] == hanging
    assert held.fix is None  # nobody knows whether its writer is alive
    assert found["group.rebalancing", "storm."].evidence["rebalances"] >= 6
    assert found["schema.missing-events", "renamed."].evidence["records"] == 60
    assert ("transactions.stuck", "writer.") not in ward.diagnosis()


def leave_behind(servers, name, group):
    """Read two of ten events in a group, and leave."""
    producer = confluent_kafka.Producer(servers)
    for number in range(10):
        producer.produce(name, str(number))
    producer.flush(10)
    options = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(servers | options)
    consumer.subscribe([name])
    for _ in range(2):
        assert consumer.poll(20).error() is None
        consumer.commit(asynchronous=False)
    consumer.close()


def storm(servers, name, group):
    """Have members come and go."""
    for _ in range(8):
        consumer = confluent_kafka.Consumer(servers | {"group.id": group, "auto.offset.reset": "earliest"})
        consumer.subscribe([name])
        deadline = time.monotonic() + 15
        while not consumer.assignment() and time.monotonic() < deadline:
            consumer.poll(0.2)
        consumer.close()


def changed(settings, renamed):
    """The producer renames a field of the events."""
    with Producer(settings) as producer:
        producer.send_all(renamed, [Visit(f"u{n}", now()) for n in range(60)])
        for number in range(60):
            event = {"id": f"n{number}", "visitor": f"u{number}", "at": now().isoformat()}
            producer.send_bytes(renamed.name, b"u", json.dumps(event).encode())


def unread_slot(settings, mark):
    """Make a slot that nobody reads, and have the database write its log on."""
    name = f"slot_{mark}"
    with psycopg.connect(settings.dsn().value, autocommit=True) as database:
        database.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
        for _ in range(20):
            database.execute("select pg_logical_emit_message(false, 'doctor', 'x')")
            database.execute("select pg_switch_wal()")
    return name
