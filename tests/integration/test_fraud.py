"""The fraud application: a model from history, every alert that the log calls for, and a kill -9."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial

import psutil
import pytest
from tests import quick

from penstock.apps.fraud import bank_table
from penstock.apps.fraud.demo import run_fraud
from penstock.apps.fraud.events import (
    TOPICS,
    Block,
    Model,
    Profile,
    Transaction,
    alerts,
    alerts_once,
    blocked,
    history,
    models,
    profiles,
    suspects,
    transactions,
)
from penstock.apps.fraud.expected import Judge
from penstock.apps.fraud.model import train
from penstock.apps.fraud.pipeline import fraud, suspicious
from penstock.apps.fraud.plan import Plan
from penstock.apps.fraud.report import quality
from penstock.apps.fraud.status import Status
from penstock.apps.fraud.traffic import REASONS, Traffic, past_cases
from penstock.capture import Runner as Capturing
from penstock.capture import Wishes
from penstock.local import running
from penstock.log import Broker, Consumer, Producer, apply
from penstock.pipeline import Runner
from penstock.schemas import spark_schema
from penstock.testing import Feed, Sent

START = datetime(2026, 1, 1, tzinfo=UTC)


def read(topic, settings):
    with Consumer(topic, settings) as consumer:
        return [record.event for record in consumer.records(idle="1 second")]


def family(pid):
    """A process and all that it has started, by their command lines."""
    found = {}
    for each in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            found[" ".join(each.cmdline())] = each
    return found


def heed_ctrl_c():
    """What is started in the background by a shell ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(reached, seconds):
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.fixture(scope="module")
def model(settings, spark):
    """A model of the past, trained in a replay."""
    apply(TOPICS, Broker(settings))
    with Producer(settings) as producer:
        producer.send_all(history, past_cases(2_000))
    return train(spark, settings)


@contextmanager
def captured_profiles(settings, traffic):
    """The bank's table and its capture, which is gone at the end with all that it has made."""
    bank_table.fill(settings, traffic.profiles())
    wishes = Wishes()
    thread = threading.Thread(target=Capturing(settings, bank_table.CAPTURE.name, wishes).run)
    thread.start()
    try:
        bank_table.await_captured(settings)
        yield
    finally:
        wishes.stopped.set()
        thread.join(30)


def judge(settings, model):
    return Judge(bank_table.read(settings), model)


def paid(card, seconds):
    at = START + timedelta(seconds=seconds)
    return Transaction(card, "user", "payment", Decimal(20), 48.2, 16.4, at, id=f"{card}-{seconds}")


def test_a_blocked_card_is_refused_from_its_alert_on_and_not_before(spark):
    known = Model("logistic", -9.0, {"ratio": 1.0, "far": 1.0}, START)
    model = spark.createDataFrame([asdict(known)], spark_schema(Model))
    reads = {"acts": transactions, "profile": profiles, "block": blocked}
    homes = [Sent(Profile(card, 48.2, 16.4, 30.0), written=START) for card in ("a", "b")]
    with Feed(spark, partial(suspicious, model=model), output="update", **reads) as feed:
        feed.send(profile=homes, block=[Block("a", "a-6/many", START + timedelta(seconds=6))])
        feed.send(acts=[paid("a", 5), paid("a", 7), paid("b", 7), paid("a", 6)])
    assert [(row.id, row.evidence, row._side_output) for row in feed.results] == [
        ("a-7/blocked", ["a-6/many"], "fraud.refused")
    ]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_as_a_stream_it_emits_what_the_log_calls_for(settings, spark, tmp_path, model):
    place = replace(settings, data=tmp_path)
    traffic = Traffic(honest=2_000, scenarios=200)
    with captured_profiles(place, traffic), Producer(place) as producer:
        producer.send(models, model)
        acts = [traffic.next(START + timedelta(milliseconds=10 * number)) for number in range(15_000)]
        producer.send_all(transactions, acts)
    for flows in (["suspicious", "taken_over"], ["each_once"], ["count_suspects"]):
        with Runner(fraud, place, mode="stream", once=True, flows=flows, spark=spark) as runner:
            assert runner.wait(200)
    emitted, once = read(alerts, place), read(alerts_once, place)
    assert {alert.id: alert.evidence for alert in emitted} == judge(place, model).alerts(acts)
    assert sorted(alert.id for alert in once) == sorted(alert.id for alert in emitted)
    ids = {alert.id for alert in emitted}
    assert len(emitted) == len(ids)
    for reason in REASONS:
        precision, recall, labelled = quality(reason, ids, traffic.labels)
        assert labelled > 10
        assert (precision, recall) == (1, 1) if reason != "model" else precision > 0.9 and recall > 0.7
    acts_of = {each.user: each.acts for each in read(suspects, place)}
    assert sum(acts_of.values()) == len(ids)


@pytest.mark.long  # `make demo` is this, at five times the rate
@pytest.mark.timeout(400)
def test_in_real_time_through_a_kill_exactly_the_alerts_come_that_have_to(model):
    """On a platform of its own, as the demo has it."""
    plan = Plan(rate=200, seconds=8, after=3, settled=1)
    with running() as settings:
        report = run_fraud(replace(settings, spark=quick.SPARK), plan, Status(), model)
    assert report.complete, (report.lost, report.wrong, report.miscounted)
    assert report.alerts > 50
    assert report.blocking.refused > 10
    assert (report.missing, report.doubled, report.blocking.wrong) == (0, 0, 0)
    assert report.latencies
    assert {reason for reason, (_, recall, _) in report.quality.items() if recall == 1} >= {*REASONS} - {
        "model"
    }


@pytest.mark.long
@pytest.mark.timeout(120)
def test_ctrl_c_stops_kafka_and_the_training_within_seconds_and_says_so(tmp_path):
    with (tmp_path / "printed").open("wb") as printed:
        command = [sys.executable, "-m", "penstock.cli", "demo", "fraud"]
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        demo = subprocess.Popen(
            command, env=environment, stdout=printed, stderr=printed, preexec_fn=heed_ctrl_c
        )
    wait_for(lambda: "penstock.apps.fraud.model" in " ".join(family(demo.pid)), 60)
    began = [*family(demo.pid).values()]
    demo.send_signal(signal.SIGINT)
    assert demo.wait(20) == 130
    assert "nothing is left running" in (tmp_path / "printed").read_text()
    _, alive = psutil.wait_procs(began, 5)
    assert alive == []
    assert [path.name for path in tmp_path.iterdir()] == ["printed"]
