"""Records of Kafka's own topic of share groups, decoded: how far a queue has come in a partition.

The formats are those of Kafka's ShareSnapshot and ShareUpdate, version 0: no client can list share groups or
ask for their positions yet, so that this topic is where they are seen.
"""

import struct
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Uuid

from penstock.ops.lag.offset_commits import Fields

TOPIC = "__share_group_state"
_SNAPSHOT, _UPDATE = range(2)  # kinds of keys
_AVAILABLE, _DONE = 0, (2, 4)  # states of records; done with are those acknowledged and archived
_COUNT_TAG = 0


class SharePlace(NamedTuple):
    """A share group's place in a partition of the topic with an id."""

    group: str
    topic_id: str
    partition: int


@dataclass(frozen=True)
class ShareState:
    """Where a group starts, and how many records behind that are done with; no start before the first one.

    `returned` records came back with it (released, or their lease ended) to be handed out again.
    """

    place: SharePlace
    start: int | None
    done: int = 0
    deleted: bool = False
    returned: int = 0

    @property
    def position(self) -> int | None:
        """How many offsets are done with, as if they had been read in order."""
        return None if self.start is None else self.start + self.done


def decode(key: bytes | None, value: bytes | None) -> ShareState | None:
    """Return the state in a record; None if it is in a format that is not known."""
    try:
        reader = Fields(key or b"")
        kind = reader.int16()
        if kind not in (_SNAPSHOT, _UPDATE):
            return None
        place = SharePlace(reader.text(), _id(reader.raw(16)), reader.int32())
        if value is None:
            return ShareState(place, None, deleted=True)
        return _state(place, Fields(value), is_snapshot=kind == _SNAPSHOT)
    except (struct.error, UnicodeDecodeError, IndexError):
        return None


def _state(place: SharePlace, reader: Fields, *, is_snapshot: bool) -> ShareState | None:
    if reader.int16() != 0:
        return None
    reader.raw(12 if is_snapshot else 8)  # epochs
    start = reader.int64()
    if is_snapshot:
        reader.raw(16)  # when it was made and written
    batches = [_batch(reader) for _ in range(max(0, reader.varint() - 1))]
    done = sum(max(0, each.last - max(each.first, start) + 1) for each in batches if each.state in _DONE)
    again = sum(
        each.last - each.first + 1 for each in batches if each.state == _AVAILABLE and each.deliveries
    )
    known = _tagged(reader, done)
    return ShareState(place, start if start >= 0 else None, known, returned=0 if is_snapshot else again)


class _Batch(NamedTuple):
    """Records of one state, and how often they were handed out."""

    first: int
    last: int
    state: int
    deliveries: int


def _batch(reader: Fields) -> _Batch:
    found = _Batch(reader.int64(), reader.int64(), reader.raw(1)[0], reader.int16())
    _skip_tags(reader)
    return found


def _tagged(reader: Fields, otherwise: int) -> int:
    """The number of records that are done with, where the broker counts them."""
    for _ in range(reader.varint()):
        tag, content = reader.varint(), reader.raw(reader.varint())
        if tag == _COUNT_TAG and (count := Fields(content).int32()) >= 0:
            return count
    return otherwise


def _skip_tags(reader: Fields) -> None:
    for _ in range(reader.varint()):
        reader.varint()
        reader.raw(reader.varint())


def _id(raw: bytes) -> str:
    """A topic's id as Kafka's client spells it: with + and / where Kafka's own tools write - and _."""
    return str(Uuid(*struct.unpack(">qq", raw)))
