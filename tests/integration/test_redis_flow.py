"""A flow that writes Redis: verified, and brought back when Redis was restored to an older state."""

import shutil
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.integration.redis_server import require_redis, with_redis

from penstock.errors import LedgerError
from penstock.events import Event
from penstock.local import Platform
from penstock.log import Broker, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner, verify
from penstock.targets.redis import RedisHashes, RedisSortedSet
from penstock.targets.redis.client import connect


@dataclass(frozen=True)
class Score(Event):
    player: str
    points: int
    at: datetime


@pytest.fixture
def platform(tmp_path):
    require_redis()
    made = Platform(tmp_path / "redis", services=("redis",))
    yield made
    made.down()


@pytest.fixture
def world(settings, platform, tmp_path):
    return replace(with_redis(settings, platform.up()), data=tmp_path / "data")


@pytest.fixture
def scores(world, unique):
    topic = Topic(f"scores.{unique}", Score, key="player", partitions=2)
    apply([topic], Broker(world))
    return topic


def make(unique, topic):
    pipeline = Pipeline(f"p{unique}")

    @pipeline.flow(reads={"scores": topic}, writes=RedisHashes("player", key="player"))
    def latest(scores):
        return scores

    @pipeline.flow(
        reads={"scores": topic}, writes=RedisSortedSet("best", member="player", score="points", keep=5)
    )
    def best(scores):
        return scores

    return pipeline


def send(world, topic, numbers):
    with Producer(world) as producer:
        now = datetime.now(UTC)
        producer.send_all(topic, [Score(f"p{number}", number, now) for number in numbers])


def run(world, spark, pipeline, **options):
    with Runner(pipeline, world, spark=spark, once=True, **options) as runner:
        runner.wait()


def held(world):
    with closing(connect(world.url("redis"))) as client:
        return sum(1 for _ in client.scan_iter("player:*")), client.zrange("best", 0, -1)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_redis_that_was_restored_is_brought_back_from_the_ledger(
    spark, world, platform, unique, scores, tmp_path
):
    pipeline, data = make(unique, scores), platform.data / "redis" / "data"
    send(world, scores, range(100))
    run(world, spark, pipeline)
    assert all(found.ok for found in verify(pipeline, world, spark))
    platform.down()
    shutil.copytree(data, tmp_path / "backup")
    world = with_redis(world, platform.up())
    send(world, scores, range(100, 200))
    run(world, spark, pipeline)
    platform.down()
    shutil.rmtree(data)
    shutil.copytree(tmp_path / "backup", data)
    world = with_redis(world, platform.up())
    assert held(world)[0] == 100
    assert not all(found.ok for found in verify(pipeline, world, spark))
    send(world, scores, range(200, 300))
    with pytest.raises(LedgerError, match="--from-ledger"):
        run(world, spark, pipeline)
    run(world, spark, pipeline, from_ledger=True)
    assert held(world) == (300, [f"p{number}".encode() for number in range(295, 300)])
    assert all(found.ok for found in verify(pipeline, world, spark))
    assert Path(world.flows).exists()
