"""What Kafka's coordinators write down: open transactions, and how often groups were spread anew."""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.ops.doctor.probes import OpenTransaction, Rebalances
from penstock.settings import Settings

TRANSACTIONS, GROUPS = "__transaction_state", "__consumer_offsets"
_MOST = 2_000  # records of a partition, the last ones
_ONGOING = 1
_CLASSIC, _CONSUMER = 2, 3  # kinds of keys: the generation of a group, by the older and the newer protocol
_FLEXIBLE_TRANSACTION, _FLEXIBLE_GROUP = 1, 4  # versions from which lengths are written as varints
_WINDOW = 600.0  # seconds


@dataclass
class _Fields:
    """Reads Kafka's primitive types one after the other; `flexible` ones have lengths of variable size."""

    data: bytes
    flexible: bool = False
    at: int = 0

    def number(self, kind: str) -> int:
        found: int = struct.unpack_from(">" + kind, self.data, self.at)[0]
        self.at += struct.calcsize(kind)
        return found

    def text(self) -> str:
        length = self.varint() - 1 if self.flexible else self.number("h")
        found = self.data[self.at : self.at + max(0, length)]
        self.at += len(found)
        return found.decode("utf-8", "replace")

    def count(self) -> int:
        return max(0, self.varint() - 1 if self.flexible else self.number("i"))

    def varint(self) -> int:
        found = shift = 0
        while True:
            byte = self.number("B")
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7

    def skip_tags(self) -> None:
        for _ in range(self.varint() if self.flexible else 0):
            self.varint()
            self.at += self.varint()


def open_transactions(settings: Settings) -> tuple[OpenTransaction, ...]:
    """Return the transactions that are open now, by the last word of their coordinator."""
    last: dict[bytes | None, bytes | None] = {}
    for message in _last_records(settings, TRANSACTIONS):
        last[message.key()] = message.value()
    found = (parse_transaction(key, value) for key, value in last.items() if key and value)
    return tuple(each for each in found if each is not None)


def parse_transaction(key: bytes, value: bytes) -> OpenTransaction | None:
    """Return the transaction of a record, if it is open."""
    try:
        fields, name = _Fields(value), _Fields(key)
        name.number("h")
        fields.flexible = fields.number("h") >= _FLEXIBLE_TRANSACTION
        fields.number("q")
        fields.number("h")
        timeout, status = fields.number("i") / 1000, fields.number("b")
        if status != _ONGOING:
            return None
        partitions = tuple(_partitions(fields))
        fields.number("q")
        return OpenTransaction(name.text(), fields.number("q") / 1000, timeout, partitions)
    except struct.error:
        return None


def _partitions(fields: _Fields) -> Iterator[tuple[str, int]]:
    for _ in range(fields.count()):
        topic = fields.text()
        yield from [(topic, fields.number("i")) for _ in range(fields.count())]
        fields.skip_tags()


def rebalances(settings: Settings, now: float | None = None) -> tuple[Rebalances, ...]:
    """Return how many generations each group had in the last minutes."""
    now = time.time() if now is None else now
    seen: dict[str, dict[int, float]] = {}
    for message in _last_records(settings, GROUPS):
        found, at = parse_generation(message.key(), message.value()), message.timestamp()[1] / 1000
        if found is not None and now - at < _WINDOW:
            seen.setdefault(found[0], {}).setdefault(found[1], at)
    return tuple(
        Rebalances(group, len(each), now - min(each.values()), max(each.values()))
        for group, each in seen.items()
    )


def parse_generation(key: bytes | None, value: bytes | None) -> tuple[str, int] | None:
    """Return the group and the generation that a record is of, if it is of one."""
    if not key or not value:
        return None
    try:
        name, fields = _Fields(key), _Fields(value)
        kind, version = name.number("h"), fields.number("h")
        if kind == _CONSUMER:
            return name.text(), fields.number("i")
        if kind != _CLASSIC:
            return None
        fields.flexible = version >= _FLEXIBLE_GROUP
        fields.text()
        return name.text(), fields.number("i")
    except struct.error:
        return None


def _last_records(settings: Settings, topic: str) -> Iterator[Received]:
    with Cursor(topic, settings, group="penstock.doctor") as cursor:
        first, ends = cursor.beginnings(), cursor.ends()
        starts = {number: max(first[number], end - _MOST) for number, end in ends.items()}
        cursor.go_to(starts)
        yield from cursor.read_to(ends)
