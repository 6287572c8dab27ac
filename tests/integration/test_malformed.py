"""Malformed records: none is passed that is neither decoded nor in the dead letters, whatever is killed."""

import threading
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from pyspark.errors import StreamingQueryException
from tests.integration.test_sink_kafka import read

from penstock import points
from penstock.errors import FlowError
from penstock.events import Event
from penstock.identity import Identity
from penstock.log import Broker, Producer, Table, Topic, apply
from penstock.log.dead_letters import DeadLetter
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.attempt import Attempt
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.claim import Claim
from penstock.pipeline.job import flow_job
from penstock.pipeline.malformed import Judge
from penstock.pipeline.plan import Planner
from penstock.process import lookup
from penstock.targets.kafka.lane import read_entry
from penstock.testing.sink_contract import Crash, crash_at

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEATH = (Crash, StreamingQueryException)  # of the second, the first is the cause


@dataclass(frozen=True)
class Reading(Event, type="reading"):
    sensor: str
    value: int
    at: datetime


@dataclass(frozen=True)
class Wider(Event, type="reading"):
    """The same, of another version of the code: the value may be missing."""

    sensor: str
    at: datetime
    value: int = 0


@dataclass(frozen=True)
class Limit(Event):
    sensor: str
    limit: int
    at: datetime


LACKING = b'{"id": "lacking", "sensor": "s1", "at": "2026-01-01T00:00:00Z"}'


@pytest.fixture
def place(settings, tmp_path):
    return replace(settings, data=tmp_path)


@pytest.fixture
def world(place, spark, unique):
    """A topic with nine readings and one record that only the wider class can read."""
    found = SimpleNamespace(settings=place, spark=spark, name=f"p{unique}", topic=f"readings.{unique}")
    found.out = f"out.{unique}"
    apply([Topic(found.topic, Reading, key="sensor", partitions=2)], Broker(place))
    send(found, 9)
    bury(found, LACKING)
    return found


def send(world, count, start=0):
    topic = Topic(world.topic, Reading, key="sensor", partitions=2)
    with Producer(world.settings) as producer:
        producer.send_all(
            topic, [Reading(f"s{n % 4}", n, NOW, id=f"r{n}") for n in range(start, start + count)]
        )


def bury(world, value, topic=None):
    with Producer(world.settings) as producer:
        producer.send_bytes(topic or world.topic, b"s1", value)


def copying(world, cls=Reading, names=("copy",), **options):
    """A pipeline of flows that copy the readings, each to its own topic, by a class."""
    pipeline = Pipeline(world.name)
    source = Topic(world.topic, cls, key="sensor", partitions=2)
    for name in names:

        def copy(rows):
            return rows

        copy.__name__ = name
        target = Topic(f"{world.out}.{name}", Wider, key="sensor")
        pipeline.flow(reads={"rows": source}, writes=target, **options)(copy)
    return pipeline


def attempt(world, pipeline, flow="copy", **options):
    """Run a flow as a process of its own would, to the end of what is there; trouble is raised."""
    runner = Runner(pipeline, world.settings, spark=world.spark, once=True)  # makes the topics
    runner.stop()
    planner = Planner(world.spark, world.settings, counting=True)
    job = flow_job(pipeline, pipeline.flows[flow])
    checkpoint = Checkpoint(world.spark, f"{world.settings.flows}/{pipeline.name}/{flow}/checkpoint")
    judge = Judge(Identity.of_dead_letters("", pipeline.name), planner)
    claim = Claim(job, planner)
    Attempt(job, planner, judge, checkpoint, claim, threading.Event(), lanes=2, once=True, **options).run()


def letters(world, topic=None):
    return [
        DeadLetter.from_message(each).value
        for each in read(world.settings, f"{topic or world.topic}.dead-letters")
    ]


def results(world, name="copy"):
    """How often each event is in the results; a reader knows what was written again by its id."""
    topic = Topic(f"{world.out}.{name}", Wider)
    if topic.name not in Broker(world.settings).topics([topic.name]):
        return Counter()
    decode = topic.codec().decode
    return Counter(decode(each.value()).id for each in read(world.settings, topic.name))


READ = {f"r{n}": 1 for n in range(9)}


@pytest.mark.timeout(120)
def test_a_kill_after_the_lanes_and_other_code_lose_no_malformed_record(world, monkeypatch):
    with monkeypatch.context() as patch:
        crash_at(patch, "sink.kafka.written")
        with pytest.raises(DEATH):
            attempt(world, copying(world))
    attempt(world, copying(world, Wider))
    assert letters(world) == [LACKING]
    assert results(world) == READ


@pytest.mark.timeout(120)
def test_dead_letters_are_durable_before_any_lane_commits(world, monkeypatch):
    seen = []

    def at_point(_, line):
        _, point, label = line.split()
        if point == "flow.settled":
            entries = [read_entry(world.settings, label, lane).batch for lane in (0, 1)]
            seen.append((entries, letters(world)))
            raise Crash(point)

    with monkeypatch.context() as patch:
        patch.setenv(points.VARIABLE, "nobody listens")
        patch.setattr(points, "_send", at_point)
        with pytest.raises(DEATH):
            attempt(world, copying(world))
    assert seen == [([None, None], [LACKING])]
    attempt(world, copying(world))
    assert (letters(world), results(world)) == ([LACKING], READ)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_flows_at_different_positions_share_the_dead_letters(world):
    pipeline = copying(world, names=("copy", "other", "replayed"))
    run_once(world, pipeline, flows=["copy"])
    send(world, 3, start=9)
    bury(world, b"no reading")
    run_once(world, pipeline, flows=["replayed"], mode="replay")
    run_once(world, pipeline, flows=["copy", "other"])
    assert Counter(letters(world)) == {LACKING: 1, b"no reading": 1}
    assert results(world) == READ | {f"r{n}": 1 for n in (9, 10, 11)}


def run_once(world, pipeline, **options):
    with Runner(pipeline, world.settings, spark=world.spark, once=True, **options) as runner:
        assert runner.wait(100)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_pipelines_topics_may_change(world, unique):
    run_once(world, copying(world))
    wider = copying(world)
    other = Topic(f"more.{unique}", Reading, key="sensor")

    @wider.flow(reads={"rows": other}, writes=Topic(f"{world.out}.more", Wider, key="sensor"))
    def more(rows):
        return rows

    run_once(world, wider, flows=["copy"])
    assert other.name not in Broker(world.settings).topics([other.name])  # nobody asked for it
    run_once(world, wider)
    run_once(world, copying(world))
    assert letters(world) == [LACKING]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("code", [Reading, pytest.param(Wider, marks=pytest.mark.long)])
def test_real_time_killed_before_its_batch_is_settled_goes_on_with_any_code(world, monkeypatch, code):
    """Spark has committed the batch: by the same code it is settled now, by another it is worked on again."""
    with monkeypatch.context() as patch:
        crash_at(patch, "flow.settled")
        patch.setattr(Judge, "judge", lambda *_: 0)  # dies before the dead letters are written
        with pytest.raises(DEATH):
            attempt(world, copying(world, guarantee="at-least-once"))
    assert letters(world) == []
    attempt(world, copying(world, code, guarantee="at-least-once"))
    assert letters(world) == ([LACKING] if code is Reading else [])
    assert set(results(world)) == {*READ, *(["lacking"] if code is Wider else [])}
    attempt(world, copying(world, code, guarantee="at-least-once"))
    assert len(letters(world)) == (code is Reading)


@pytest.mark.long
@pytest.mark.timeout(120)
def test_malformed_rows_of_a_table_that_is_looked_up_are_dead_letters(world, unique):
    limits = Table(f"limits.{unique}", Limit, key="sensor")
    pipeline = Pipeline(world.name)

    @pipeline.flow(
        reads={"rows": Topic(world.topic, Reading, key="sensor", partitions=2)},
        looks_up={"limits": limits},
        writes=Topic(f"{world.out}.copy", Wider, key="sensor"),
    )
    def copy(rows, limits):
        return rows.transform(lookup.broadcast(limits, by="sensor", name="limits")).drop("limits")

    apply([limits], Broker(world.settings))
    bury(world, b"no limit", limits.name)
    run_once(world, pipeline)
    send(world, 1, start=9)
    run_once(world, pipeline)
    assert letters(world, limits.name) == [b"no limit"]
    assert letters(world) == [LACKING]


@pytest.mark.long
@pytest.mark.timeout(120)
def test_what_has_no_malformed_records_is_read_once(world, monkeypatch):
    run_once(world, copying(world))
    send(world, 5, start=9)
    monkeypatch.setattr(Planner, "malformed", None)
    run_once(world, copying(world))
    assert len(results(world)) == 14


def test_two_classes_for_one_topic_are_refused(world):
    pipeline = copying(world)
    with pytest.raises(FlowError, match=r"a topic of Wider in json.* a topic of Reading in json"):

        @pipeline.flow(reads={"rows": Topic(world.topic, Wider)}, writes=Topic("elsewhere", Wider))
        def other(rows):
            return rows


@pytest.mark.long
@pytest.mark.timeout(180)
def test_another_decoder_looks_again_and_writes_no_letter_twice(world):
    """A flow that reads later, by a stricter class, must not trust what the other one judged."""
    both = ("copy", "other")
    bury(world, b"no reading")
    attempt(world, copying(world, Wider, names=both))
    assert Counter(letters(world)) == {b"no reading": 1}
    bury(world, b"no reading 2")
    attempt(world, copying(world, names=both))  # by the stricter class, from where the wider one has ended
    attempt(world, copying(world, names=both), flow="other")
    assert Counter(letters(world)) == {b"no reading": 1, b"no reading 2": 1, LACKING: 1}
    assert results(world, "other") == READ
