"""Experiment 5: what it shows is what plain clients see in the table, the topic and the copies."""

import json
import time

import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.integration.redis_server import require_redis
from tests.laboratory import tried

from penstock.lab.experiments.capture.experiment import EXPERIMENT
from penstock.log import Broker

COPIES = ("index", "cache", "lake")


def table(settings, run):
    with psycopg.connect(settings.dsn().value) as connection:
        return dict(connection.execute(f"SELECT id, version FROM lab_{run}.items"))


def captured(settings, run):
    """The last version of each row in the topic, and how many changes it has."""
    topic = f"lab.capture.{run}.lab_{run}.items"
    consumer = Consumer(settings.client() | {"group.id": "none", "isolation.level": "read_committed"})
    end = Broker(settings).committed_end(topic)[0]
    consumer.assign([TopicPartition(topic, 0, 0)])
    last, updates = {}, 0
    while consumer.position([TopicPartition(topic, 0)])[0].offset < end:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            value = json.loads(message.value())
            last[value["after"]["id"]] = value["after"]["version"]
            updates += value["op"] == "u"
    consumer.close()
    return last, updates


def is_level(found):
    return all(found.get(f"{name}_differ") == 0 for name in COPIES)


def test_captured_copies_follow_and_the_own_cache_goes_wrong(settings):
    require_redis()
    with tried(EXPERIMENT, settings, rate=0, pause=0, lake=0.2) as lab:
        lab.until(lambda found: is_level(found) and found.get("own_differ") == 0)
        run = lab.frame["run"]
        lab.press("change")
        found = lab.until(
            lambda found: found["changes"] == 1 and found["lake_applied"] == 1 and is_level(found)
        )
        assert found["own_differ"] == 0
        assert all(0 <= found[f"{name}_lag"] < 30_000 for name in COPIES)
        lab.press("fail")
        lab.until(lambda found: found["failed"] == 1 and found["own_differ"] == 1)
        lab.press("race")
        found = lab.until(
            lambda found: (
                found["crossed"] == 1
                and found["own_differ"] == 2
                and found["lake_applied"] == found["changes"]
                and is_level(found)
            )
        )
        rows = table(settings, run)
        assert [version for version, _ in found["lake_rows"]] == [rows[row] for row in range(len(rows))]
        assert captured(settings, run) == (rows, found["changes"])
        wrong = {row: version for row, (version, _) in enumerate(found["own_rows"]) if version != rows[row]}
        assert wrong == {1: 1, 2: 2}  # the failed write never came; of the race, the older version was kept
    check_gone(settings, run)


def check_gone(settings, run):
    with psycopg.connect(settings.dsn().value) as connection:
        left = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [f"lab_{run}"]).fetchall()
        slots = connection.execute(
            "SELECT 1 FROM pg_replication_slots WHERE slot_name LIKE %s", [f"%lab_{run}%"]
        ).fetchall()
    assert (left, slots) == ([], [])
    assert not [name for name in Broker(settings).topics() if run in name]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_at_a_rate_dual_writes_cross_by_themselves(settings):
    require_redis()
    with tried(EXPERIMENT, settings, rate=20, pause=300, lake=1) as lab:
        lab.until(lambda found: found.get("crossed", 0) >= 2 and found["own_differ"] >= 1, 150)
        lab.change(rate=0)
        time.sleep(1)
        found = lab.until(lambda found: found["lake_applied"] == found["changes"] and is_level(found))
        run = lab.frame["run"]
        rows = table(settings, run)
        for name in COPIES:
            assert [version for version, _ in found[f"{name}_rows"]] == [
                rows[row] for row in range(len(rows))
            ]
        assert captured(settings, run)[1] == found["changes"]
