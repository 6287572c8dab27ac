"""Spark over an archive and Kafka: replays, verification and rebuilds see the log as it was."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from tests.integration.archived import archived_in_a_bucket, make_archive, move

from penstock.errors import FlowError, SetupError
from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.log.archive.declarations import Declarations
from penstock.pipeline import Pipeline, Runner, rebuild, verify
from penstock.process import read
from penstock.process.wire.source import kafka_rows
from penstock.settings import reveal
from penstock.targets import PostgresTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Sale(Event):
    shop: str
    pieces: int
    at: datetime


@dataclass
class World:
    """A topic of sales, part of it archived, with a malformed record in either part."""

    settings: Any
    spark: Any
    name: str
    sales: Topic[Sale]
    folder: Any

    def send(self, numbers):
        with Producer(self.settings) as producer:
            for number in numbers:
                at = NOON + timedelta(seconds=number)
                producer.send(self.sales, Sale(f"shop {number % 5}", number, at, id=f"sale {number}"))
            producer.send_bytes(self.sales.name, b"shop 1", b"not a sale")

    def run(self, pipeline, **more):
        with Runner(pipeline, self.settings, spark=self.spark, once=True, **more) as runner:
            runner.wait(120)

    def ask(self, statement):
        with psycopg.connect(reveal(self.settings.dsn()), autocommit=True) as connection:
            return sorted(connection.execute(statement).fetchall())

    def archive(self):
        """Let the first part be in the archive only, and more of it in both."""
        archive = make_archive(self.settings, self.sales.name, self.folder)
        move(self.settings, self.sales.name)
        Declarations(self.settings).put(replace(archive, keep="1 hour"))


@pytest.fixture
def world(settings, spark, unique, tmp_path):
    sales = Topic(f"sales.{unique}", Sale, key="shop", partitions=2, retention="forever")
    apply([sales], Broker(settings))
    made = World(settings, spark, f"a{unique}", sales, tmp_path / "archive")
    made.send(range(300))
    return made


def raw(world, **more):
    """All rows as Kafka's connector gives them, in the order in which Spark reads a partition."""
    found = kafka_rows(world.spark, world.settings, [world.sales.name], streaming=False, **more).collect()
    kinds = kafka_rows(world.spark, world.settings, [world.sales.name], streaming=False).dtypes
    return sorted(kinds), {
        partition: [row.asDict() for row in found if row.partition == partition] for partition in (0, 1)
    }


@pytest.mark.long
def test_rows_are_those_that_kafka_had_in_the_order_of_the_log(world):
    before = raw(world)
    world.archive()
    assert raw(world) == before
    world.send(range(300, 350))
    move(world.settings, world.sales.name)  # in both now
    world.send(range(350, 380))
    kinds, whole = raw(world)
    assert kinds == before[0]
    for partition, rows in whole.items():
        offsets = [row["offset"] for row in rows]
        assert offsets == sorted(set(offsets))
        assert rows[: len(before[1][partition])] == before[1][partition]
    topic, ends = world.sales.name, {0: 70, 1: 90}
    _, part = raw(world, start={topic: {0: 20, 1: 50}}, end={topic: ends})
    for partition, start in ((0, 20), (1, 50)):
        expected = [row for row in whole[partition] if start <= row["offset"] < ends[partition]]
        assert part[partition] == expected
    sales = read(world.spark, world.sales, world.settings, counted="malformed")
    assert sales.selectExpr("count(*)", "sum(pieces)").first()[:] == (380, sum(range(380)))


def pipeline_of(world, target, **more):
    made = Pipeline(world.name)

    @made.flow(reads={"sales": world.sales}, writes=target, **more)
    def large(sales):
        return sales.where("pieces % 3 = 0").drop("id")

    return made


def replayed(world, name):
    """What a replay makes of each partition, in the order in which it was written, with its provenance."""
    named, target = replace(world, name=name), Topic(f"{name}.large", Sale, key="shop")
    named.run(pipeline_of(named, target, mode="replay"))
    with Consumer(target, world.settings) as consumer:
        found = list(consumer.records(idle="1 second"))
    made = [
        (*dict(record.headers)["penstock.made-by"].decode().split()[-1].split("/"), record.event)
        for record in found
    ]
    return {
        partition: [(at, event.shop, event.pieces) for _, part, at, event in made if part == partition]
        for partition in ("0", "1")
    }


def test_a_replay_over_the_archive_gives_what_it_gave_before(world):
    before = replayed(world, f"{world.name}b")
    world.archive()
    after = replayed(world, f"{world.name}c")
    assert sum(map(len, before.values())) == 100
    assert after == before
    letters = Topic(f"{world.sales.name}.dead-letters", Sale)
    with Consumer(letters, world.settings) as consumer:
        list(consumer.records(idle="1 second"))
        assert consumer.malformed == 2  # one of each pipeline


@pytest.mark.long
def test_a_flow_that_ran_is_verified_and_rebuilt_from_the_archive(world):
    target = PostgresTable(world.name, key="shop", write="upsert", columns=("shop", "pieces"))
    pipeline = pipeline_of(world, target)
    world.run(pipeline)
    before = world.ask(f"select shop, pieces from {world.name}")
    world.archive()
    world.send(range(300, 330))
    world.run(pipeline)
    assert [each.ok for each in verify(pipeline, world.settings, world.spark)] == [True, True]
    assert world.ask(f"select shop, pieces from {world.name}") != before
    now = world.ask(f"select shop, pieces from {world.name}")
    done = rebuild(pipeline, "large", world.settings, world.spark)
    assert done.swapped
    assert world.ask(f"select shop, pieces from {world.name}") == now
    assert [each.ok for each in verify(pipeline, world.settings, world.spark)] == [True, True]


def test_a_stream_does_not_begin_in_the_midst_of_a_topic_in_silence(world):
    world.archive()
    world.send(range(300, 310))
    pipeline = pipeline_of(world, PostgresTable(world.name))
    with pytest.raises(FlowError, match=r"would begin in the midst of .* is in the topic's archive"):
        world.run(pipeline)
    aware = pipeline_of(world, PostgresTable(world.name), options={"startingOffsets": "earliest"})
    world.run(aware)
    assert len(world.ask(f"select id from {world.name}")) == 4


def test_spark_says_what_it_lacks_for_an_archive_in_a_bucket(world):
    with archived_in_a_bucket(world.settings, world.sales.name) as world.settings:
        move(world.settings, world.sales.name)
        with pytest.raises(SetupError, match="this Spark can't read S3; give Spark the library"):
            raw(world)
