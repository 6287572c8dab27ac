"""What a capture needs of MongoDB: collections with change streams, and wishes that documents can fulfil."""

from penstock.capture.capture import Capture
from penstock.capture.mongodb.change import time_of
from penstock.capture.mongodb.change_stream import ChangeStream
from penstock.capture.mongodb.client import Client
from penstock.capture.position import Position, StreamPlace
from penstock.errors import CaptureError

_PLAIN = {
    "slot": "",
    "publication": "",
    "messages": (),
    "outbox": None,
    "transactions": False,
    "decimals": "string",
    "intervals": "string",
}
_WAIT = 0.1  # seconds


class Source:
    """The database of a capture: what is asked of it besides its streams."""

    def __init__(self, client: Client, capture: Capture) -> None:
        self.client, self.capture = client, capture

    def check(self) -> list[str]:
        """Refuse a server, a user or collections with which it would not work; return what to know."""
        refuse_wishes(self.capture)
        notes = [note for path in self.capture.tables if (note := self._look_at(path))]
        for path in self.capture.tables:
            ChangeStream(self.client, path, self.beginning(path), _WAIT).close()
        return notes

    def beginning(self, path: str) -> StreamPlace:
        """Return the place behind all that a read sees from now on."""
        return StreamPlace(time_of(self.client.now(path)))

    def refuse_other(self, position: Position) -> None:
        """Refuse a replica set of another name: its times and tokens mean nothing here."""
        known, found = position.system.id, self.client.replica_set
        if known != found:
            raise CaptureError(
                f"this is the replica set {found!r}, the position is of {known!r}",
                hint="point the connection at the right one; or `penstock capture run "
                f"{self.capture.name} --snapshot-again` writes all documents again",
            )

    def _look_at(self, path: str) -> str | None:
        kind = self.client.kind(path)
        if kind is None:
            return f"there is no collection {path} yet: it is captured once it is there"
        if kind != "collection":
            raise CaptureError(f"{path!r} is a {kind}", hint="only plain collections have change streams")
        return None


def refuse_wishes(capture: Capture) -> None:
    """Refuse what has no meaning for documents, rather than to ignore it."""
    if capture.format != "debezium-json":
        raise CaptureError(
            f"documents can't be written as {capture.format}: they have no columns",
            hint="leave --format out: they are written as debezium-json",
        )
    for option, plain in _PLAIN.items():
        if getattr(capture, option) != plain:
            raise CaptureError(f"captures of MongoDB have no {option}", hint=f"leave --{option} out")
