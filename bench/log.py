"""Typed produce and consume against the plain confluent-kafka client moving the same bytes."""

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import confluent_kafka

from penstock.apps.tour.payments import make_payments, payments
from penstock.events import Event
from penstock.local import running
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.registry import Registry
from penstock.settings import Settings


@dataclass(frozen=True)
class View(Event):
    """A small event: two texts and a time. A payment has a decimal and two floats more."""

    user: str
    url: str
    at: datetime


views = Topic("bench.views", View, key="user")
EVENTS = 200_000
ROUNDS = 5
SIZE = 1000


def main() -> None:
    print(f"Produce and consume {EVENTS:,} events, 4 partitions; median of {ROUNDS} interleaved rounds\n")
    print("| event | format | work | plain client | Penstock | ratio |")
    print("|---|---|---|---:|---:|---:|")
    with running(services=("kafka",)) as settings, Registry(settings) as registry:
        pages, paid = list(make_views(EVENTS)), list(make_payments(EVENTS))
        for topic, events in ((views, pages), (payments, paid)):
            for format in ("json", "json-schema", "avro"):
                name = f"bench.{topic.event.__name__}.{format}"
                _compare(settings, replace(topic, name=name, format=format, partitions=4), events, registry)
    print(f"\n`penstock up` to the first acknowledged event: {up_to_first_event():.1f} s")


def make_views(count: int) -> Iterator[View]:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(count):
        yield View(
            f"user-{number % 5000}",
            f"/shop/{number % 997}",
            start + timedelta(milliseconds=number),
            id=f"v{number}",
        )


def _compare(settings: Settings, topic: Topic, events: list, registry: Registry) -> None:
    codec = topic.codec(registry)
    messages = [(topic.key_of(event), codec.encode(event)) for event in events]
    gc.freeze()  # the inputs are no part of either side's work
    rounds: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        name = f"{topic.name}.{number}"
        for side in ("plain", "typed"):
            apply([replace(topic, name=f"{name}.{side}")], Broker(settings))
        typed, plain = replace(topic, name=f"{name}.typed"), f"{name}.plain"
        for label, work in (
            ("plain produce", lambda plain=plain: plain_produce(settings, plain, messages)),
            ("typed produce", lambda typed=typed: typed_produce(settings, typed, events, registry)),
            ("plain consume", lambda plain=plain: plain_consume(settings, plain)),
            ("typed consume", lambda typed=typed: typed_consume(settings, typed, registry)),
        ):
            rounds.setdefault(label, []).append(_rate(work))
    for work in ("produce", "consume"):
        plain_rate, typed_rate = (statistics.median(rounds[f"{side} {work}"]) for side in ("plain", "typed"))
        ratio = typed_rate / plain_rate
        event = topic.event.__name__
        print(
            f"| {event} | {topic.format} | {work} | {plain_rate:,.0f}/s | {typed_rate:,.0f}/s | {ratio:.2f} |"
        )


def _rate(work: Callable[[], float]) -> float:
    gc.collect()
    return EVENTS / work()


def plain_produce(settings: Settings, topic: str, messages: list[tuple[bytes, bytes]]) -> float:
    producer = confluent_kafka.Producer(
        settings.client()
        | {
            "enable.idempotence": True,
            "linger.ms": 5,
            "compression.type": "lz4",
            "partitioner": "murmur2_random",
            "delivery.report.only.error": True,
        }
    )
    began = time.perf_counter()
    for number, (key, value) in enumerate(messages):
        while True:
            try:
                producer.produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.05)
        if number % SIZE == 0:
            producer.poll(0)
    producer.flush()
    return time.perf_counter() - began


def typed_produce(settings: Settings, topic: Topic, events: list, registry: Registry) -> float:
    began = time.perf_counter()
    with Producer(settings, schemas=registry) as producer:
        for event in events:
            producer.send(topic, event)
    return time.perf_counter() - began


def plain_consume(settings: Settings, topic: str) -> float:
    consumer = confluent_kafka.Consumer(
        settings.client()
        | {
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
            "auto.offset.reset": "earliest",
        }
    )
    partitions = [confluent_kafka.TopicPartition(topic, number, 0) for number in range(4)]
    began = time.perf_counter()
    consumer.assign(partitions)
    count = 0
    while count < EVENTS:
        values = [message.value() for message in consumer.consume(SIZE, 1.0) if message.error() is None]
        count += len(values)
    elapsed = time.perf_counter() - began
    consumer.close()
    return elapsed


def typed_consume(settings: Settings, topic: Topic, registry: Registry) -> float:
    with Consumer(topic, settings, schemas=registry) as consumer:
        began = time.perf_counter()
        count = 0
        for batch in consumer.batches(SIZE):
            count += len(batch.events)
            if count >= EVENTS:
                break
        return time.perf_counter() - began


def up_to_first_event() -> float:
    """Time a fresh `penstock up` in its own process until an event is acknowledged."""
    with tempfile.TemporaryDirectory() as folder:
        penstock = Path(sys.executable).parent / "penstock"
        began = time.perf_counter()
        subprocess.run([penstock, "up"], cwd=folder, check=True, capture_output=True)
        try:
            settings = Settings.load(Path(folder))
            apply([payments], Broker(settings))
            with Producer(settings) as producer:
                producer.send_all(payments, make_payments(1))
            return time.perf_counter() - began
        finally:
            subprocess.run([penstock, "down"], cwd=folder, check=True, capture_output=True)
