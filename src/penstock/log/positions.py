"""Where reading starts: the beginning, the end, a moment or an offset."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from penstock.errors import ConfigurationError
from penstock.log.client import TIMEOUT


@dataclass(frozen=True)
class Position:
    """A place in each partition of a topic; made by the functions below."""

    kind: str
    time: datetime | None = None
    offsets: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))

    def resolve(self, client: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions with the offsets this position means now."""
        match self.kind:
            case "beginning":
                return [_at(each, _watermarks(client, each)[0]) for each in partitions]
            case "end":
                return [_at(each, _watermarks(client, each)[1]) for each in partitions]
            case "time":
                return self._by_time(client, partitions)
            case _:
                return [
                    _at(each, self.offsets.get(each.partition, _watermarks(client, each)[0]))
                    for each in partitions
                ]

    def _by_time(self, client: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
        assert self.time is not None  # noqa: S101
        milliseconds = int(self.time.timestamp() * 1000)
        asked = [_at(each, milliseconds) for each in partitions]
        found = client.offsets_for_times(asked, timeout=TIMEOUT)
        return [
            _at(each, _watermarks(client, each)[1]) if each.offset in (OFFSET_END, -1) else each
            for each in found
        ]


def from_beginning() -> Position:
    """Start at the oldest event that is kept."""
    return Position("beginning")


def from_end() -> Position:
    """Start at the next event that is written."""
    return Position("end")


def from_time(moment: datetime) -> Position:
    """Start at the first event that was written at or after a moment.

    >>> from datetime import UTC, datetime
    >>> from_time(datetime(2026, 1, 1, tzinfo=UTC)).kind
    'time'
    """
    if moment.utcoffset() is None:
        raise ConfigurationError(f"{moment!r} has no time zone", hint="write datetime(…, tzinfo=UTC)")
    return Position("time", time=moment)


def from_offsets(offsets: Mapping[int, int]) -> Position:
    """Start at given offsets, by partition; partitions that aren't named start at their beginning."""
    for partition, offset in offsets.items():
        if offset < 0:
            raise ConfigurationError(f"partition {partition} has the offset {offset}, expected 0 or more")
    return Position("offsets", offsets=MappingProxyType(dict(offsets)))


def _at(partition: TopicPartition, offset: int) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition, offset)


def _watermarks(client: Consumer, partition: TopicPartition) -> tuple[int, int]:
    return client.get_watermark_offsets(_at(partition, 0), timeout=TIMEOUT)
