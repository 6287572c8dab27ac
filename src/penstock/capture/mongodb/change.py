"""The changes of a collection, as its change stream brings them."""

from dataclasses import dataclass
from typing import Any

from bson.datetime_ms import DatetimeMS
from bson.timestamp import Timestamp

from penstock.errors import CaptureError

_OPS = {"insert": "c", "update": "u", "replace": "u", "delete": "d"}
INVALIDATE = "invalidate"
_SHIFT = 32


@dataclass(frozen=True)
class DocumentChange:
    """A change of one document; `after` is the document as it was found when the change was read."""

    op: str
    id: Any
    after: dict[str, Any] | None
    time: int = 0  # of the cluster, as a number
    before: dict[str, Any] | None = None
    update: dict[str, Any] | None = None
    session: Any = None
    transaction: int | None = None
    wall: int | None = None  # milliseconds since 1970

    @classmethod
    def of(cls, event: dict[str, Any]) -> "DocumentChange | None":
        """Return the change of an event; None of one that is about the collection itself."""
        op = _OPS.get(event["operationType"])
        if op is None:
            return None
        key = event.get("documentKey") or {}
        if "_id" not in key:
            raise CaptureError(
                f"an event of kind {event['operationType']!r} has no id of its document",
                hint="is this MongoDB itself? it sends one with each change",
            )
        return cls(
            op=op,
            id=key["_id"],
            after=event.get("fullDocument") if op != "d" else None,
            time=time_of(event.get("clusterTime")),
            before=event.get("fullDocumentBeforeChange"),
            update=event.get("updateDescription"),
            session=event.get("lsid"),
            transaction=event.get("txnNumber"),
            wall=_wall(event.get("wallTime")),
        )


def time_of(timestamp: Timestamp | None) -> int:
    """Return a time of the cluster as a number that grows.

    >>> time_of(Timestamp(5, 7)) == (5 << 32) + 7
    True
    """
    return 0 if timestamp is None else timestamp.time << _SHIFT | timestamp.inc


def timestamp_of(time: int) -> Timestamp:
    return Timestamp(time >> _SHIFT, time & (1 << _SHIFT) - 1)


def _wall(time: object) -> int | None:
    return int(time) if isinstance(time, DatetimeMS) else None
