"""What is delivered: events, and requests of one or several of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Literal, NamedTuple
from urllib.parse import quote

import pyarrow as pa

Format = Literal["json", "ndjson"]
COLUMNS = ("id", "key", "body", "topic", "partition", "offset")
_LONGEST_ID = 200
_VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) != "%")


class Event(NamedTuple):
    """A result to be delivered, and where in the log its source is, if that is known."""

    id: str
    key: str | None
    body: str
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Request:
    """Events that are sent together: one as it is, several as a JSON array or as lines of JSON."""

    events: tuple[Event, ...]
    format: Format = "json"
    array: bool = False

    @property
    def id(self) -> str:
        """What a receiver knows a duplicate by; a header can't hold all characters, nor very long texts."""
        ids = [event.id for event in self.events]
        if len(ids) > 1:
            return sha256("\n".join(ids).encode()).hexdigest()
        shown = quote(ids[0], safe=_VISIBLE)
        return shown if len(shown) <= _LONGEST_ID else sha256(ids[0].encode()).hexdigest()

    @property
    def keys(self) -> frozenset[str | None]:
        return frozenset(event.key for event in self.events)

    @property
    def body(self) -> bytes:
        bodies = [event.body for event in self.events]
        if self.format == "ndjson":
            return "".join(f"{body}\n" for body in bodies).encode()
        return (f"[{','.join(bodies)}]" if self.array else bodies[0]).encode()

    def headers(self, flow: str, attempt: int) -> dict[str, str]:
        """Return what goes with the body, but for signatures."""
        kind = "application/x-ndjson" if self.format == "ndjson" else "application/json"
        found = {"Content-Type": kind, "Idempotency-Key": self.id}
        found |= {"Penstock-Flow": flow, "Penstock-Attempt": str(attempt)}
        if len(self.events) > 1 or self.array:
            found["Penstock-Events"] = str(len(self.events))
        (first, *others) = self.events
        if not others and first.topic is not None:
            place = (quote(first.topic), str(first.partition), str(first.offset))
            found |= dict(
                zip(("Penstock-Topic", "Penstock-Partition", "Penstock-Offset"), place, strict=True)
            )
        return found

    def split(self) -> "list[Request]":
        """Return a request for each event: one of them may be to blame."""
        return [Request((event,), self.format, self.array) for event in self.events]


def events_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Event]:
    """Yield the rows of Arrow batches as events."""
    for batch in batches:
        yield from map(Event._make, zip(*(batch.column(name).to_pylist() for name in COLUMNS), strict=True))


def requests_of(events: Iterable[Event], size: int | None, format: Format) -> Iterator[Request]:
    """Yield requests of `size` events each; None is one event that is in no array."""
    rest = iter(events)
    while taken := tuple(islice(rest, size or 1)):
        yield Request(taken, format, size is not None)
