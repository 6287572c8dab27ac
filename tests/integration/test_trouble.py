"""Runs that can't go on: each says what it lacks and ends, and none is tried for ever."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from confluent_kafka import TopicPartition
from pyspark.sql import functions as F
from tests import quick
from tests.integration.shop import make_sales
from tests.integration.test_malformed import Reading, Wider, copying, place, results, run_once, send, world
from tests.integration.till import sales

from penstock.errors import DataLossError, FlowError, LogError, TargetError
from penstock.log import Broker, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.plan import Planner
from penstock.testing import Driver

__all__ = ["place", "world"]  # fixtures
MODULE = str(Path(__file__).with_name("till.py"))


@pytest.fixture
def driver(settings, tmp_path):
    settings = replace(settings, data=tmp_path, spark=quick.SPARK)
    apply([sales], Broker(settings))
    made = Driver("till", MODULE, settings, options=["--begin-anew"])
    made.settings = settings
    yield made
    made.kill()


def begin(driver, seed):
    """Start the driver, and wait until it is at work."""
    with Producer(driver.settings) as producer:
        producer.send_all(sales, make_sales(20, seed=seed, start=1000 * seed))
    driver.start()
    deadline = time.monotonic() + 120
    while "batch" not in driver.last_words(50):
        assert driver.alive, driver.last_words()
        assert time.monotonic() < deadline, driver.last_words()
        time.sleep(0.3)


@pytest.mark.timeout(240)
def test_a_dead_java_process_ends_the_run_with_a_code_of_its_own(driver):
    begin(driver, 81)
    java = [each for each in psutil.Process(driver.pid).children() if "java" in each.name()]
    java[0].kill()
    assert driver.wait(60) == 69, driver.last_words(40)
    assert "Java process has ended" in driver.last_words(20)


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_signal_to_the_whole_group_ends_in_order(driver):
    """systemd, `timeout` and terminals signal the Java process, too."""
    begin(driver, 82)
    os.killpg(driver.pid, signal.SIGTERM)
    assert driver.wait(60) == 0, driver.last_words(40)
    said = driver.last_words(20)
    assert "stopping" in said
    assert not [word for word in ("Traceback", "Exception", "tries again") if word in said], said


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_result_that_is_too_large_is_not_tried_for_ever(world):
    pipeline = copying(world)

    @pipeline.flow(
        reads={"rows": Topic(world.topic, Reading, key="sensor", partitions=2)},
        writes=Topic(f"{world.out}.large", Wider, key="sensor"),
    )
    def large(rows):
        return rows.withColumn("sensor", F.repeat("sensor", 2_000_000))

    with pytest.raises(TargetError, match=r"(?s)too large.*max.message.bytes"):
        run_once(world, pipeline, flows=["large"])


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_transaction_longer_than_the_broker_allows_is_refused(world):
    with pytest.raises(TargetError, match=r"transaction.max.timeout.ms"):
        run_once(world, copying(world, timeout="2 hours"))


@pytest.mark.long
@pytest.mark.timeout(180)
def test_events_that_were_deleted_unread_are_reported_with_their_place(world):
    run_once(world, copying(world))
    send(world, 20, start=9)
    broker = Broker(world.settings)
    ends = broker.committed_end(world.topic)
    kept = [TopicPartition(world.topic, part, end - 1) for part, end in ends.items()]
    for deleted in broker.admin.delete_records(kept).values():
        deleted.result(10)
    with pytest.raises(DataLossError, match=rf"{world.topic}.*failOnDataLoss"):
        run_once(world, copying(world))
    run_once(world, copying(world, options={"failOnDataLoss": "false"}))
    assert len(results(world)) == 9 + len(ends)


@pytest.mark.long
@pytest.mark.timeout(180)
def test_a_lost_state_file_is_reported(world):
    pipeline = Pipeline(world.name)

    @pipeline.flow(
        reads={"rows": Topic(world.topic, Reading, key="sensor", partitions=2)},
        writes=Topic(f"{world.out}.copy", Wider, key="sensor"),
    )
    def copy(rows):
        return rows.groupBy("sensor").agg(F.count("*").alias("value"), F.max("at").alias("at"))

    run_once(world, pipeline)
    state = Path(world.settings.flows) / world.name / "copy" / "checkpoint" / "state"
    for file in [*state.rglob("*.zip"), *state.rglob("*.changelog")]:
        file.unlink()
    world.spark._jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    send(world, 4, start=9)
    with pytest.raises(FlowError, match=r"can't load its state from .* begin anew"):
        run_once(world, pipeline)


def test_what_can_not_be_learned_is_trouble_and_not_the_end_of_a_thread(world, monkeypatch):
    def unknown(self, flow, span=None):
        raise RuntimeError(f"penstock:unknown-schema:{world.topic}:7")

    def away(self, topic, id):
        raise LogError("the registry's topic does not answer")

    monkeypatch.setattr(Planner, "results", unknown)
    monkeypatch.setattr(Planner, "learn", away)
    said = []
    runner = Runner(
        copying(world), world.settings, spark=world.spark, report=lambda _, what: said.append(what)
    )
    with runner:
        deadline = time.monotonic() + 20
        while not any("can't be learned" in each for each in said):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert runner.runs["copy"].status in ("starting", "waiting")
    assert runner.runs["copy"].status == "stopped"


@pytest.mark.timeout(180)
def test_partitions_that_are_added_in_real_time_are_taken_in(world, monkeypatch):
    """All tasks of a real-time batch run at once: new ones need a new plan."""
    monkeypatch.setattr("penstock.pipeline.attempt._LOOK_AT_TOPICS", 1.0)
    pipeline = copying(world, mode="realtime", checkpoint_interval="5 seconds")
    said = []
    runner = Runner(pipeline, world.settings, spark=world.spark, report=lambda _, what: said.append(what))
    with runner:
        await_results(world, 9)
        Broker(world.settings).grow(world.topic, 4)
        send(world, 40, start=9)
        await_results(world, 49)
    assert any("more partitions" in each for each in said)


def await_results(world, count):
    deadline = time.monotonic() + 80
    while len(found := results(world)) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count}"
        time.sleep(0.5)
