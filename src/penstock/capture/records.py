"""Changes as records of the log: Debezium's envelope, or flat rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import msgspec

from penstock.capture.pgoutput import UNCHANGED, Change, Values
from penstock.capture.tables import Column, TableShape
from penstock.capture.times import is_zero
from penstock.capture.transactions import TransactionEvents
from penstock.capture.types import Type
from penstock.capture.values import Encode, Encoding, text
from penstock.log.transactional_writer import Message

Format = Literal["debezium-json", "debezium-avro", "flat-json"]
FORMATS: tuple[Format, ...] = ("debezium-json", "debezium-avro", "flat-json")
_AMBIGUOUS = ("varbit", "bit", "timetz")  # of which two values may be written alike
_quote = msgspec.json.encode


@dataclass(frozen=True)
class Origin:
    """Where a change comes from: its transaction, and what a source block says of it."""

    committed: int  # microseconds since 1970
    xid: int | None
    last_commit: int | None = None
    snapshot: str = "false"
    now: int = 0  # nanoseconds
    events: TransactionEvents | None = None  # that are counted, if anybody wants to know


class Deletions(Protocol):
    """Makes the records that delete rows of which only the key is known."""

    def deletion(self, key: bytes, origin: Origin, lsn: int) -> list[Message]:
        """Return the records that delete a row of which only the key is known."""


class Records(Deletions, Protocol):
    """Makes the records of one table's changes."""

    topic: str
    has_key: bool

    def of(self, change: Change, origin: Origin, lsn: int) -> list[Message]:
        """Return the records of a change."""

    def key_of(self, values: Values) -> bytes | None:
        """Return the key of a row as it is written."""

    def truncation(self, origin: Origin, lsn: int) -> list[Message]:
        """Return the records of a truncation, besides the deletions of its rows."""


class RowEncoder:
    """Writes rows of one shape as JSON objects."""

    def __init__(self, columns: Sequence[Column], encoding: Encoding, *, as_key: bool = False) -> None:
        self._encoders = [
            _key_encoder(each.type, encoding) if as_key else encoding.of(each.type) for each in columns
        ]
        self._names = [b"%b:" % _quote(each.name) for each in columns]
        self._template = b"{%b}" % b",".join(name.replace(b"%", b"%%") + b"%b" for name in self._names)

    def write(self, values: Values) -> bytes:
        """Return a row; values that are not known are left out."""
        if UNCHANGED in values:
            return self._partial(values)
        return self._template % tuple(
            [b"null" if value is None else encode(value) for encode, value in zip(self._encoders, values)]  # type: ignore[arg-type] # noqa: B905
        )

    def _partial(self, values: Values) -> bytes:
        known = (
            name + (b"null" if value is None else encode(value))  # type: ignore[arg-type]
            for name, encode, value in zip(self._names, self._encoders, values, strict=True)
            if value is not UNCHANGED
        )
        return b"{%b}" % b",".join(known)


def _key_encoder(type: Type, encoding: Encoding) -> Encode:
    """Return what writes values in keys, where no two may be alike."""
    if type.name in _AMBIGUOUS:
        return text
    if not type.zeroes:
        return encoding.of(type)
    encode = encoding.of(replace(type, zeroes=False))
    return lambda value: text(value) if is_zero(value) else encode(value)


class Keys:
    """The key of a row: an object of its columns, or the value alone as text."""

    def __init__(self, shape: TableShape, encoding: Encoding, *, plain: bool) -> None:
        self._places = shape.key_places
        self._encoder = RowEncoder(shape.key_columns, encoding, as_key=True)
        self._plain = plain and len(self._places) == 1

    def __call__(self, values: Values) -> bytes | None:
        if not self._places:
            return None
        found = [values[place] for place in self._places]
        if self._plain:
            return found[0]  # type: ignore[return-value]
        return self._encoder.write(found)


class FlatRecords:
    """A row as it is after the change, and a tombstone when it is gone."""

    def __init__(self, topic: str, shape: TableShape, encoding: Encoding) -> None:
        self.topic, self.has_key = topic, bool(shape.key)
        self._key = Keys(shape, encoding, plain=True)
        self._row = RowEncoder(shape.columns, encoding)

    def key_of(self, values: Values) -> bytes | None:
        return self._key(values)

    def of(self, change: Change, origin: Origin, lsn: int) -> list[Message]:  # noqa: ARG002
        if change.after is None:
            return [(self.topic, self._key(change.before or []), None, None)]
        key, made = self._key(change.after), []
        if change.before is not None and (old := self._key(change.before)) != key:
            made.append((self.topic, old, None, None))
        return [*made, (self.topic, key, self._row.write(change.after), None)]

    def deletion(self, key: bytes, origin: Origin, lsn: int) -> list[Message]:  # noqa: ARG002
        return [(self.topic, key, None, None)]

    def truncation(self, origin: Origin, lsn: int) -> list[Message]:  # noqa: ARG002
        return []


def completed(change: Change) -> Change:
    """Return a change with the values that its update did not touch, as far as the old row has them."""
    after, before = change.after, change.before
    if after is None or before is None:
        return change
    known = [UNCHANGED if change.key_only and old is None else old for old in before]
    filled = [old if new is UNCHANGED else new for new, old in zip(after, known, strict=True)]
    return change._replace(after=filled)
