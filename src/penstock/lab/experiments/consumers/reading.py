"""What the stream holds: readings of sensors."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.events import Event, new_id
from penstock.events.event import new_ids
from penstock.log import Producer, Topic

_SENSORS, _CHUNK = 100, 5_000


@dataclass(frozen=True)
class Reading(Event):
    """What a sensor has measured."""

    sensor: str
    value: float
    at: datetime


def readings(name: str) -> Topic[Reading]:
    """A topic of one partition: its log is one row of offsets."""
    return Topic(name, Reading, key="sensor", partitions=1)


def send_many(producer: Producer, topic: Topic[Reading], count: int) -> Iterator[int]:
    """Send so many readings, and yield how many were sent; encoded once for each sensor, but for the id."""
    for begun in range(0, count, _CHUNK):
        marker, now = new_id(), datetime.now(UTC)
        encoded = [_encoded(topic, number, now, marker) for number in range(_SENSORS)]
        ids = new_ids(min(_CHUNK, count - begun))
        for place, each in enumerate(ids):
            key, head, tail = encoded[place % _SENSORS]
            producer.send_bytes(topic.name, key, head + each.encode() + tail)
        yield begun + len(ids)


def _encoded(topic: Topic[Reading], number: int, now: datetime, marker: str) -> tuple[bytes, bytes, bytes]:
    """The key of a sensor's reading, and its value before and behind the id."""
    event = Reading(f"sensor-{number}", number / 4, now, id=marker)
    head, _, tail = topic.codec(None).encode(event).partition(marker.encode())
    return event.sensor.encode(), head, tail
