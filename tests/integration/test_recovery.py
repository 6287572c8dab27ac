"""Lost checkpoints, topics made again, and two processes: what is refused, and what goes on."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import functions as F
from tests.integration.test_malformed import (
    DEATH,
    READ,
    Reading,
    Wider,
    attempt,
    copying,
    place,
    results,
    send,
    world,
)

from penstock.errors import FlowError, LedgerError, TopicError
from penstock.log import Broker, Table, Topic, apply
from penstock.log.ledger import Entry
from penstock.pipeline import Pipeline, Runner
from penstock.targets.kafka.lane import KafkaLane, read_entry
from penstock.targets.kafka.sink import KafkaSink
from penstock.testing.sink_contract import crash_at

__all__ = ["place", "world"]  # fixtures


def lose(world, flow="copy"):
    shutil.rmtree(Path(world.settings.flows) / world.name / flow)


def all_of(count):
    return {f"r{n}": 1 for n in range(count)}


def die_between_lanes(world, monkeypatch, pipeline):
    """The first lane has committed its part of a batch, the second has not."""

    def half(self, rows, batch, before_commit):
        lane = KafkaLane(world.settings, self.id, 0, 60_000)
        before_commit(rows)
        lane.send(list(_in_lane(self, rows, 0)), Entry(self._epoch, batch))
        raise OSError("killed between lanes")

    with monkeypatch.context() as patch:
        patch.setattr(KafkaSink, "_write_lanes", half)
        with pytest.raises((OSError, *DEATH)):
            attempt(world, pipeline)


def _in_lane(sink, rows, number):
    spread = sink._lanes.spread(rows, sink.lanes).withColumn("lane", F.spark_partition_id())
    for row in spread.where(F.col("lane") == number).collect():
        headers = [(each.key, bytes(each.value)) for each in row.headers]
        yield row.topic, row.key and bytes(row.key), row.value and bytes(row.value), headers


@pytest.mark.timeout(240)
@pytest.mark.parametrize("first", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_checkpoint_lost_between_lanes_is_made_good_from_the_ledger(world, monkeypatch, first):
    """Also in the first batch, when a lane has no entry at all; and it may itself be killed and repeated."""
    pipeline, count = copying(world), 9
    if not first:
        attempt(world, pipeline)
        send(world, 6, start=9)
        count = 15
    die_between_lanes(world, monkeypatch, pipeline)
    label = f"{world.name}.copy"
    numbers = [read_entry(world.settings, label, lane).batch for lane in (0, 1)]
    assert numbers[0] != numbers[1]
    lose(world)
    with pytest.raises(LedgerError, match="is empty"):
        attempt(world, pipeline)
    for point in ("flow.recovering", "flow.settled", "flow.planned"):
        if point == "flow.planned":
            send(world, 3, start=count)
        with monkeypatch.context() as patch:
            crash_at(patch, point)
            with pytest.raises(DEATH):
                attempt(world, pipeline, from_ledger=True)
    attempt(world, pipeline)  # the new checkpoint goes on where the ledger ends: no flag is needed
    assert results(world) == all_of(count + 3)


@pytest.mark.timeout(180)
def test_losing_all_checkpoints_of_a_pipeline_without_state(world):
    pipeline = copying(world, names=("copy", "other"))
    once(world, pipeline)
    lose(world)
    lose(world, "other")
    send(world, 3, start=9)
    once(world, pipeline, from_ledger=True)
    assert results(world) == results(world, "other") == all_of(12)


def once(world, pipeline, **options):
    with Runner(pipeline, world.settings, spark=world.spark, once=True, **options) as runner:
        assert runner.wait(100)


@pytest.mark.timeout(120)
def test_a_flow_with_state_is_not_let_go_on_without_it(world):
    pipeline = Pipeline(world.name)

    @pipeline.flow(
        reads={"rows": Topic(world.topic, Reading, key="sensor", partitions=2)},
        writes=Topic(f"{world.out}.copy", Wider, key="sensor"),
    )
    def copy(rows):
        return rows.groupBy("sensor").agg(F.count("*").alias("value"), F.max("at").alias("at"))

    attempt(world, pipeline)
    lose(world)
    with pytest.raises(FlowError, match="keeps state, which was lost"):
        attempt(world, pipeline, from_ledger=True)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_topic_that_was_made_again_is_refused_and_can_be_begun_anew(world):
    """It may have outgrown the old offset: then only its id shows it."""
    attempt(world, copying(world))
    remake(world, 40)
    with pytest.raises(TopicError, match=r"deleted and made again .* --flow copy --begin-anew"):
        attempt(world, copying(world))
    assert results(world) == READ
    once(world, copying(world), begin_anew=True)
    assert results(world) == all_of(40) | {f"r{n}": 2 for n in range(9)}


def remake(world, count):
    broker = Broker(world.settings)
    broker.delete(world.topic)
    apply([Topic(world.topic, Reading, key="sensor", partitions=2)], broker)
    send(world, count)


@pytest.mark.timeout(120)
def test_a_topic_that_is_made_again_while_a_flow_runs_is_refused(world, monkeypatch):
    """Between reading and committing is the last moment."""
    attempt(world, copying(world))
    send(world, 3, start=9)
    plain = KafkaSink.write

    def meanwhile(self, rows, batch, before_commit):
        remake(world, 40)
        return plain(self, rows, batch, before_commit)

    with monkeypatch.context() as patch:
        patch.setattr(KafkaSink, "write", meanwhile)
        with pytest.raises((TopicError, *DEATH)):
            attempt(world, copying(world))
    assert results(world) == READ


@pytest.mark.timeout(120)
def test_a_table_that_got_more_partitions_is_refused(world, unique):
    limits = Table(f"limits.{unique}", Reading, key="sensor", partitions=2)
    pipeline = Pipeline(world.name)

    @pipeline.flow(
        reads={"rows": Topic(world.topic, Reading, key="sensor", partitions=2)},
        looks_up={"limits": limits},
        writes=Topic(f"{world.out}.copy", Wider, key="sensor"),
    )
    def copy(rows, limits):
        return rows.join(limits.select("sensor"), "sensor", "left")

    attempt(world, pipeline)
    Broker(world.settings).grow(limits.name, 3)
    with pytest.raises(TopicError, match=r"had 2 partitions .* has 3: its keys have moved"):
        attempt(world, pipeline)


@pytest.mark.timeout(120)
def test_a_process_that_does_not_fit_shuts_nobody_out(world):
    attempt(world, copying(world))
    label = f"{world.name}.copy"
    before = read_entry(world.settings, label, 0).epoch
    shutil.move(Path(world.settings.flows) / world.name, Path(world.settings.flows) / "kept")
    with pytest.raises(LedgerError):
        attempt(world, copying(world))
    assert read_entry(world.settings, label, 0).epoch == before
