"""What breaks down around flows, caused for real: a flow that failed or was killed, a plan that takes long,
a partition that is larger, a full disk, a slot that has lost changes. The doctor finds each of them."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

import confluent_kafka
import psycopg
import pytest
from pyspark.sql import functions as F
from tests.integration.ward import Ward, make, now, send
from tests.lacking import lacking

from penstock.events import Event
from penstock.log import Broker, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.pipeline.flow_status import flow_statuses

pytestmark = [pytest.mark.long, pytest.mark.timeout(280)]
NEARLY_FULL = 16 * 2**20  # bytes of a disk


@dataclass(frozen=True)
class Visit(Event):
    user: str
    at: datetime


MODULE = """
from dataclasses import dataclass
from datetime import datetime
from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline

@dataclass(frozen=True)
class Visit(Event):
    user: str
    at: datetime

gone = Pipeline("goneMARK")
visits, copies = (Topic(f"{name}.MARK", Visit, key="user", partitions=1) for name in ("gone", "gone-copies"))

@gone.flow(reads={"visits": visits}, writes=copies)
def copy(visits):
    return visits
"""


@pytest.fixture
def ward(settings, tmp_path, unique):
    return Ward(replace(settings, data=tmp_path), unique)


def topic(ward, name, partitions=1):
    made = Topic(f"{name}.{ward.mark}", Visit, key="user", partitions=partitions)
    apply([made], Broker(ward.settings))
    return made


def until(ward, wanted, seconds):
    deadline = time.monotonic() + seconds
    while True:
        found = ward.diagnosis()
        if wanted in found:
            return found[wanted]
        assert time.monotonic() < deadline, (found, flows(ward))
        time.sleep(1)


def test_a_flow_whose_topic_was_made_again_has_failed(ward, spark):
    pipeline, visits = Pipeline(f"ended{ward.mark}"), topic(ward, "ended")
    copies, others = topic(ward, "ended-copies"), topic(ward, "well")

    @pipeline.flow(reads={"visits": visits}, writes=copies)
    def copy(visits):
        return visits

    @pipeline.flow(reads={"visits": others}, writes=topic(ward, "well-copies"))
    def well(visits):
        return visits

    send(ward.settings, visits, [Visit("u1", now())])
    send(ward.settings, others, [Visit("u1", now())])
    with Runner(pipeline, ward.settings, spark=spark, once=True) as runner:
        assert runner.wait(120)
    Broker(ward.settings).delete(visits.name)
    until_gone(ward, visits.name)
    topic(ward, "ended")
    with Runner(pipeline, ward.settings, spark=spark, report=lambda *_: None):
        found = until(ward, ("flow.failed", "ended.copy"), 90)
        assert ("flow.failed", "ended.well") not in ward.diagnosis()
    assert found.severity == "error"
    assert "made again" in found.evidence["error"]


def until_gone(ward, name):
    deadline = time.monotonic() + 30
    while name in Broker(ward.settings).admin.list_topics(timeout=10).topics:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_flow_that_was_killed_is_silent(ward, tmp_path):
    module = tmp_path / f"gone_{ward.mark}.py"
    module.write_text(MODULE.replace("MARK", ward.mark))
    environment = {**os.environ, **ward.settings.environment(), "PENSTOCK_DATA": str(tmp_path)}
    command = [sys.executable, "-m", "penstock.cli", "run", f"gone{ward.mark}", "-m", str(module)]
    topic(ward, "gone")
    runner = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, process_group=0)
    try:
        at_work(ward, runner)
        assert ("flow.silent", "gone.copy") not in ward.diagnosis()
    finally:
        os.killpg(runner.pid, signal.SIGKILL)
    runner.wait(20)
    found = until(ward, ("flow.silent", "gone.copy"), 90)
    assert (found.severity, found.evidence["state"]) == ("error", "running")


def at_work(ward, runner):
    deadline = time.monotonic() + 120
    while [each.state for each in flows(ward)] != ["running"]:
        assert time.monotonic() < deadline
        assert runner.poll() is None
        time.sleep(0.5)


def flows(ward):
    return [each for each in flow_statuses(ward.settings) if ward.mark in each.label]


def feed(ward, visits, stopped):
    while not stopped.wait(4):
        send(ward.settings, visits, [Visit("u1", now())])


@pytest.mark.timeout(400)
def test_a_plan_that_takes_seconds_is_a_slow_checkpoint_and_its_phase(ward, spark):
    """An expression that holds itself three times, eight times over: Spark plans it anew with each batch."""
    pipeline, visits = Pipeline(f"wide{ward.mark}"), topic(ward, "wide")

    @pipeline.flow(reads={"visits": visits}, writes=topic(ward, "wide-copies"))
    def wide(visits):
        grown = F.length("user")
        for number in range(8):
            grown = F.when(grown > number, grown + 1).otherwise(grown - 1)
        return visits.where(grown > 0).select("id", "user", "at")

    with Runner(pipeline, ward.settings, spark=spark, report=lambda *_: None):
        stopped = threading.Event()
        feeding = threading.Thread(target=feed, args=(ward, visits, stopped))
        feeding.start()
        try:
            found = until(ward, ("checkpoint.slow", "wide.wide"), 300)
        finally:
            stopped.set()
            feeding.join()
    assert found.evidence["phase"] == "queryPlanning"
    assert found.evidence["seconds"] >= 2


def test_a_partition_that_has_nearly_all_events_and_no_hot_key(ward):
    name = make(ward.settings, f"skewed.{ward.mark}", 3)
    producer = confluent_kafka.Producer({"bootstrap.servers": ward.settings.kafka["bootstrap.servers"]})
    for number in range(2_000):
        partition = 1 if number % 10 else number // 10 % 3
        producer.produce(name, b"{}", f"k{number}".encode(), partition=partition)
    assert producer.flush(30) == 0
    found = ward.diagnosis()
    assert set(found) == {("partitions.skew", "skewed.")}
    assert found["partitions.skew", "skewed."].evidence["partition"] == 1


@contextmanager
def small_disk(folder):
    """A file system of its own that has little room."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={NEARLY_FULL}", "none", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        lacking(f"a disk of its own needs the right to mount one: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_fills_up(ward, tmp_path):
    folder = tmp_path / ward.mark
    folder.mkdir()
    with small_disk(folder):
        full = Ward(replace(ward.settings, data=folder), ward.mark)
        assert not [each for each in full.diagnosis() if each[0] == "disk.full"]
        (folder / "log").write_bytes(bytes(NEARLY_FULL * 9 // 10))
        [found] = [each for (id, _), each in full.diagnosis().items() if id == "disk.full"]
        assert (found.severity, found.subject) == ("warning", str(folder))
        (folder / "more").write_bytes(bytes(NEARLY_FULL * 8 // 100))
        [found] = [each for (id, _), each in full.diagnosis().items() if id == "disk.full"]
        assert found.severity == "error"


def test_a_slot_that_has_lost_changes(ward):
    """The database may keep a megabyte of its log for slots, and writes more than that."""
    name = f"lost_{ward.mark}"
    with psycopg.connect(ward.settings.dsn().value, autocommit=True) as database:
        database.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
        database.execute("alter system set max_slot_wal_keep_size = '1MB'")
        database.execute("select pg_reload_conf()")
        try:
            for _ in range(4):
                database.execute("select pg_logical_emit_message(false, 'doctor', 'x')")
                database.execute("select pg_switch_wal()")
            database.execute("checkpoint")
            found = until(ward, ("capture.slot", "postgres/lost_"), 30)
        finally:
            database.execute("alter system reset max_slot_wal_keep_size")
            database.execute("select pg_reload_conf()")
            database.execute("select pg_drop_replication_slot(%s)", [name])
    assert (found.severity, found.evidence["slot"]) == ("error", "lost")
