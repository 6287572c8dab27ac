"""Requests to a capture at work: they go through the database's log, and so are carried out once."""

from dataclasses import dataclass
from typing import Self

import msgspec

from penstock.capture.slot import Source
from penstock.errors import CaptureError

REQUEST = "snapshot"
Key = tuple[str, ...]


@dataclass(frozen=True)
class SnapshotRequest:
    """A table that is to be read again, or only its rows behind the key `after`, up to `last`."""

    path: str
    after: Key | None = None
    last: Key | None = None

    @property
    def is_range(self) -> bool:
        return self.after is not None or self.last is not None

    def send(self, source: Source) -> None:
        """Write the request to the database's log, after a look at the table."""
        if self.path not in source.capture.tables:
            raise CaptureError(
                f"capture {source.capture.name!r} has no table {self.path!r}",
                hint=f"it has {', '.join(source.capture.tables)}",
            )
        key = source.catalogue.shape(self.path).key
        if not key:
            raise CaptureError(
                f"table {self.path!r} has no primary key: its rows can't be distinguished while it changes",
                hint=f"`penstock capture run {source.capture.name} --snapshot-again` writes all tables again",
            )
        for given in (self.after, self.last):
            if given is not None and len(given) != len(key):
                raise CaptureError(
                    f"{','.join(given)!r} is not a key of {self.path!r}", hint=f"give {','.join(key)}"
                )
        source.emit("penstock", f"{REQUEST} {source.slot_name} {msgspec.json.encode(self).decode()}")

    @classmethod
    def from_json(cls, text: str) -> Self:
        return msgspec.json.decode(text, type=cls)
