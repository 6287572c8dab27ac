"""The records of a batch, reduced to what they leave behind: the last of each key."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from penstock.capture.debezium_records import TRUNCATED
from penstock.log.message import Received

Row = dict[str, msgspec.Raw]


class _Source(msgspec.Struct, gc=False):
    lsn: int = 0
    ts_us: int = 0


class _Envelope(msgspec.Struct, gc=False):
    source: _Source
    op: str
    after: Row | None = None


_envelope = msgspec.json.Decoder(_Envelope).decode


@dataclass
class Latest:
    """Rows by their keys, as records spell them, and the keys of rows that were deleted meanwhile.

    A row that came back after its deletion is in both: what it lacks is not to be found in the old one.
    """

    rows: dict[bytes, tuple[Row, int]] = field(default_factory=dict)  # with the LSN of the change
    gone: set[bytes] = field(default_factory=set)
    seen: int = 0  # when the last change was committed, in microseconds

    @classmethod
    def of(cls, messages: Iterable[Received]) -> "Latest":
        """Reduce records; a truncation has deleted each of its rows by a record of its own."""
        made = cls()
        for each in messages:
            key, value = each.key(), each.value()
            if key is None or key == TRUNCATED:
                continue
            if value is None:
                made._delete(key)
            else:
                made._take(key, _envelope(value))
        return made

    def _take(self, key: bytes, envelope: _Envelope) -> None:
        self.seen = max(self.seen, envelope.source.ts_us)
        after = envelope.after
        if after is None:
            self._delete(key)
            return
        known = self.rows.get(key)
        if known is not None and len(after) < len(known[0]):  # it may lack what it did not change
            after = {**known[0], **after}
        self.rows[key] = (after, envelope.source.lsn)

    def _delete(self, key: bytes) -> None:
        self.rows.pop(key, None)
        self.gone.add(key)
