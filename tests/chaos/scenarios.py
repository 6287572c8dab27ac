"""Faults that would spoil the shop's verifications: each hurts something beside it, and judges it."""

import random
import shutil
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.settings import Settings
from penstock.testing import Driver
from tests import quick
from tests.integration import instant, till
from tests.integration.shop import make_sales
from tests.integration.test_log_storm import Step, weather

PATIENCE = 180.0


def topic_made_again(settings: Settings) -> str:
    """A topic is deleted and made again while its flow is away: it is refused aloud, and begins anew."""
    place = _afresh(settings, "till")
    broker = Broker(settings)
    apply([till.sales], broker)
    _send(settings, till.sales, 40)
    assert _once(place, "till", till) == 0
    broker.delete(till.sales.name)
    time.sleep(1)
    apply([till.sales], broker)
    _send(settings, till.sales, 90)
    code = _once(place, "till", till)
    assert code == ConfigurationError.exit_code, f"exit code {code} instead of a refusal"
    assert _once(place, "till", till, "--begin-anew") == 0
    found = _found(settings, Topic("till.copies", till.Sale))
    expected = Counter(f"sale-{number}" for count in (40, 90) for number in range(count))
    assert found == expected, f"{sum(found.values())} of 130"
    return "refused with 78, then begun anew: 130 of 130"


def partitions_added_in_real_time(settings: Settings) -> str:
    """A real-time flow gets partitions while it runs, and is killed behind it."""
    place = _afresh(settings, "instant")
    apply([instant.orders], Broker(settings))
    run = Driver("instant", instant.__file__, replace(place, spark=quick.SPARK))
    run.start()
    try:
        sent = 0
        for count in (2, 5, 8):
            if count > 2:
                Broker(settings).grow(instant.orders.name, count)
            sent += _send(settings, instant.orders, 120, sent)
            _await(settings, instant.copies, sent, run)
        run.kill()
        sent += _send(settings, instant.orders, 120, sent)
        run.start()
        _await(settings, instant.copies, sent, run)
        assert run.stop() == 0
    finally:
        run.kill()
    found = _found(settings, instant.copies)
    assert set(found) == {f"sale-{number}" for number in range(sent)}
    return f"2 to 8, then killed: {len(found)} of {sent}, {sum(found.values()) - sent} emitted again"


def rebalance_storm(settings: Settings, folder: Path) -> str:
    """Members of three groups join, leave, are paused and killed."""
    topic = Topic(f"storm-{time.time_ns()}", Step, partitions=6)
    broker = Broker(settings)
    apply([topic, Topic(topic.name + ".out", Step)], broker)
    broker.configure_group(topic.name + ".q", {"share.session.timeout.ms": "3000"})
    folder = folder / topic.name
    folder.mkdir(parents=True)
    kills = weather(settings, topic, folder, 15, 4, seed=random.randrange(10**6))
    return f"{kills} members killed; exactly once, at most once and a queue are right"


def _afresh(settings: Settings, name: str) -> Settings:
    """Settings of its own, and none of the topics that an earlier one has left."""
    broker = Broker(settings)
    for topic in broker.topics():
        if topic.removeprefix("_penstock_").partition(".")[2].startswith(name) or topic.startswith(name):
            broker.delete(topic)
    time.sleep(1)
    place = settings.data / name
    shutil.rmtree(place, ignore_errors=True)
    return replace(settings, data=place, checkpoints=None)


def _once(settings: Settings, name: str, module: object, *options: str) -> int:
    run = Driver(name, module.__file__, replace(settings, spark=quick.SPARK), options=("--once", *options))
    run.start()
    return run.wait(int(PATIENCE))


def _send(settings: Settings, topic: Topic, count: int, start: int = 0) -> int:
    with Producer(settings) as producer:
        producer.send_all(topic, make_sales(count, seed=start, start=start))
    return count


def _found(settings: Settings, topic: Topic) -> Counter:
    with Consumer(topic, settings) as consumer:
        return Counter(record.event.id for record in consumer.records(idle="1 second"))


def _await(settings: Settings, topic: Topic, count: int, run: Driver) -> None:
    deadline = time.monotonic() + PATIENCE
    while topic.name not in Broker(settings).topics([topic.name]) or len(_found(settings, topic)) < count:
        assert time.monotonic() < deadline, run.last_words()
        assert run.alive, run.last_words()
        time.sleep(0.5)
