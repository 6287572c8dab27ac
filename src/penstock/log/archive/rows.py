"""A record as it stands in an archive, and as the message that a consumer hands out."""

from typing import NamedTuple, cast

from penstock.log.message import Received

Headers = list[tuple[str, bytes | None]]


class Row(NamedTuple):
    """A record of one partition; `kind` is Kafka's number for what its time is: 0 created, 1 appended."""

    offset: int
    timestamp: int  # milliseconds
    kind: int
    key: bytes | None
    value: bytes | None
    headers: Headers | None


def row_of(message: Received) -> Row:
    """Return a message of Kafka's as a row; librdkafka counts the kinds of times from one on."""
    kind, timestamp = message.timestamp()
    place = (message.offset(), timestamp, kind - 1)
    return Row(*place, message.key(), message.value(), message.headers() or None)


class ArchivedMessage:
    """A record of an archive, with the methods of a message that the broker has handed out."""

    __slots__ = ("_partition", "_row", "_topic")

    def __init__(self, topic: str, partition: int, row: Row) -> None:
        self._topic, self._partition, self._row = topic, partition, row

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._row.offset

    def key(self) -> bytes | None:
        return self._row.key

    def value(self) -> bytes | None:
        return self._row.value

    def headers(self) -> Headers | None:
        return self._row.headers

    def timestamp(self) -> tuple[int, int]:
        return self._row.kind + 1, self._row.timestamp

    def error(self) -> None:
        return None

    def leader_epoch(self) -> None:
        return None

    def latency(self) -> None:
        return None

    def __len__(self) -> int:
        return len(self._row.value or b"")


def message_of(topic: str, partition: int, row: Row) -> Received:
    """Return a row as a message; confluent-kafka says that its own class is not to be made by others."""
    return cast(Received, ArchivedMessage(topic, partition, row))
