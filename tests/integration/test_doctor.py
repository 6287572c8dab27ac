"""The doctor with a real broker: planted illnesses are found, and nothing else; what is healthy is silent."""

import json
import threading
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import confluent_kafka
import pytest
from tests.integration.test_cli import penstock
from tests.integration.ward import Ward, now, send
from tests.receiver import Receiver

from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply

__all__ = ["penstock"]  # a fixture


@dataclass(frozen=True)
class Visit(Event):
    user: str
    at: datetime


MODULE = """
from dataclasses import dataclass
from datetime import datetime
from penstock.events import Event
from penstock.log import Topic

@dataclass(frozen=True)
class Visit(Event):
    user: str
    at: datetime

visits = Topic("NAME.visits", Visit, key="user", partitions=2, settings={"max.message.bytes": "2000000"})
"""


def visits(mark, count, user=lambda number: f"u{number % 20}", ago=60.0):
    begun = now() - timedelta(seconds=ago)
    step = timedelta(seconds=ago / count)
    return [Visit(user(n), begun + n * step, id=f"{mark}-{n}") for n in range(count)]


def members(settings, group, topic, count, seconds):
    """Have so many members read for a while."""
    found = [
        confluent_kafka.Consumer(
            {"bootstrap.servers": settings.kafka["bootstrap.servers"], "group.id": group,
             "auto.offset.reset": "earliest", "session.timeout.ms": 6000}
        )
        for _ in range(count)
    ]  # fmt: skip
    ending = threading.Event()

    def poll(client):
        client.subscribe([topic])
        while not ending.is_set():
            client.poll(0.1)
        client.close()

    threads = [threading.Thread(target=poll, args=(each,), daemon=True) for each in found]
    for each in threads:
        each.start()
    time.sleep(seconds)
    return ending, threads


@pytest.mark.timeout(90)
def test_planted_illnesses_are_found_and_no_others(settings, unique):
    """One topic has a hot key, dead letters and a group of three for two partitions; one is healthy."""
    sick = Topic(f"sick.{unique}", Visit, key="user", partitions=2)
    well = Topic(f"well.{unique}", Visit, key="user", partitions=2)
    apply([sick, well], Broker(settings))
    send(settings, well, visits(unique, 300))
    send(settings, sick, visits(unique, 300, lambda n: "u1" if n % 5 else f"u{n}"))
    with Producer(settings) as producer:
        producer.send_bytes(sick.name, b"u1", b"{broken")
    for topic in (sick, well):
        with Consumer(topic, settings, group=f"reader.{topic.name}") as consumer:
            assert len(list(consumer.records(idle="1 second"))) == 300
    ending, threads = members(settings, f"crowd.{unique}", sick.name, 3, 5.0)
    try:
        found = Ward(settings, unique).diagnosis(topics=(well,), record="planted")
    finally:
        ending.set()
        for each in threads:
            each.join(10)
    assert {(id, subject) for id, subject in found} == {
        ("keys.hot", "sick."),
        ("letters.waiting", "sick."),
        ("group.idle-members", "crowd."),
    }
    assert found["keys.hot", "sick."].evidence["key"] == "u1"
    assert found["keys.hot", "sick."].evidence["share"] == pytest.approx(0.8, abs=0.02)
    assert found["letters.waiting", "sick."].evidence["letters"] == 1
    crowd = found["group.idle-members", "crowd."].evidence
    assert (crowd["members"], crowd["idle"], crowd["partitions"]) == (3, 1, 2)


@pytest.mark.timeout(90)
def test_the_command_finds_reports_and_fixes(penstock, settings, unique, tmp_path, monkeypatch):
    """A topic is not as declared: shown, posted, fixed with an audit line, and gone."""
    monkeypatch.setenv("PENSTOCK_DATA", str(tmp_path / "data"))
    (tmp_path / "visits.py").write_text(MODULE.replace("NAME", unique))
    own = f"{unique}.visits"
    Broker(settings).ensure(own, 2, {"max.message.bytes": "1500000"})
    words = ("doctor", "-m", "visits.py", "--only", "settings.differ")
    receiver = Receiver()
    said = penstock(*words, "--webhook", receiver.url, code=65)
    receiver.stop()
    posted = json.loads(receiver.all[0].body)
    assert "settings.differ" in said
    assert "1500000 → 2000000" in said
    assert not posted["healthy"]
    assert posted["findings"][0]["subject"] == own
    assert "would run: penstock topics apply" in penstock(*words, "--fix", "--dry-run", code=65)
    assert Broker(settings).topic(own).config["max.message.bytes"] == "1500000"
    penstock(*words, "--fix", "--yes", code=65)
    assert Broker(settings).topic(own).config["max.message.bytes"] == "2000000"
    begun, line = map(json.loads, (tmp_path / "data" / "actions.jsonl").read_text().splitlines())
    assert begun["outcome"] == "begun"
    assert (line["action"], line["subject"], line["outcome"]) == ("doctor.apply-topic", own, "done")
    assert json.loads(penstock(*words, "--json"))["healthy"]
    assert "no finding 'lag.grown'" in penstock("doctor", "--only", "lag.grown", code=78)


def test_a_webhook_that_does_not_answer_is_an_error_without_its_address(penstock, settings, unique):
    said = penstock("doctor", "--only", "disk.full", "--webhook", "http://127.0.0.1:9/a-secret-path", code=75)
    assert "not delivered" in said
    assert "a-secret-path" not in said


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_healthy_topic_that_is_read_stays_silent(settings, unique):
    well = replace(Topic(f"well.{unique}", Visit, key="user"), partitions=3)
    apply([well], Broker(settings))
    send(settings, well, visits(unique, 3_000))
    ending, threads = members(settings, f"few.{unique}", well.name, 3, 8.0)
    found = Ward(settings, unique).diagnosis(wait=5.0, topics=(well,), record="healthy")
    ending.set()
    for each in threads:
        each.join(10)
    assert found == {}
