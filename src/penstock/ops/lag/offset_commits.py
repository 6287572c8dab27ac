"""Records of Kafka's own topic of committed offsets, decoded: who stood where, and when.

The formats are those of Kafka's OffsetCommitKey (versions 0 and 1) and OffsetCommitValue (0 to 4). Records of
other kinds, such as a group's members, are passed over.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

TOPIC = "__consumer_offsets"
_COMMIT_KEYS = (0, 1)
_WITH_EPOCH, _FLEXIBLE = 3, 4  # versions of the value


class Place(NamedTuple):
    """A group's place in a partition."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True)
class OffsetCommit:
    """A position and the Unix time at which it was committed; no position if it was deleted."""

    place: Place
    position: int | None
    at: float


def decode(key: bytes | None, value: bytes | None) -> OffsetCommit | None:
    """Return the commit in a record; None if it is one of another kind, or in a format that is not known."""
    try:
        place = None if key is None else _place(key)
        if place is None:
            return None
        return OffsetCommit(place, None, 0.0) if value is None else _commit(place, value)
    except (struct.error, UnicodeDecodeError, IndexError):
        return None


def _place(key: bytes) -> Place | None:
    reader = Fields(key)
    if reader.int16() not in _COMMIT_KEYS:
        return None
    return Place(reader.text(), reader.text(), reader.int32())


def _commit(place: Place, value: bytes) -> OffsetCommit | None:
    reader = Fields(value)
    version = reader.int16()
    if not 0 <= version <= _FLEXIBLE:
        return None
    position = reader.int64()
    if version >= _WITH_EPOCH:
        reader.int32()
    reader.compact_text() if version >= _FLEXIBLE else reader.text()
    return OffsetCommit(place, position, reader.int64() / 1000)


class Fields:
    """Reads the fields of one of Kafka's messages, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def int16(self) -> int:
        return self._number(">h")

    def int32(self) -> int:
        return self._number(">i")

    def int64(self) -> int:
        return self._number(">q")

    def text(self) -> str:
        return self.raw(max(0, self.int16())).decode()

    def compact_text(self) -> str:
        return self.raw(max(0, self.varint() - 1)).decode()

    def varint(self) -> int:
        """An unsigned number in groups of seven bits, the lowest first."""
        found, shift, byte = 0, 0, 0x80
        while byte & 0x80:
            byte = self.raw(1)[0]
            found |= (byte & 0x7F) << shift
            shift += 7
        return found

    def raw(self, size: int) -> bytes:
        found = self._data[self._at : self._at + size]
        if len(found) < size:
            raise struct.error(f"{size} bytes were expected, {len(found)} are left")
        self._at += size
        return found

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self.raw(struct.calcsize(form)))[0])
