"""A MongoDB, as the commands of a capture use it."""

import json
import time
from dataclasses import replace

from penstock.capture.capture import Capture
from penstock.capture.mongodb.client import Client
from penstock.capture.mongodb.source import Source
from penstock.capture.position import Position
from penstock.capture.slot import Slot
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.capture.store import Store
from penstock.capture.tables import TableShape
from penstock.durations import duration
from penstock.errors import CaptureError
from penstock.settings import Settings

_LIVELY = 3  # heartbeats: who has not written for longer is taken for dead


class MongoDbDatabase:
    """The replica set or cluster of a capture."""

    def __init__(self, client: Client, capture: Capture, settings: Settings) -> None:
        self._source, self._capture, self._settings = Source(client, capture), capture, settings

    def check(self) -> list[str]:
        return self._source.check()

    def slot(self, position: Position | None) -> Slot:
        """Say who runs the capture; how many bytes it is behind is not known of MongoDB."""
        confirmed = position.lsn if position else 0
        return Slot(self._capture.name, self._holder(position), confirmed, "kept", None, None)

    def shape(self, path: str) -> TableShape:
        raise CaptureError(
            f"the documents of {path!r} have no columns that classes could be written of",
            hint="write the class by hand; in a flow, parse the text in `after`",
        )

    def request(self, request: SnapshotRequest) -> None:
        """Write a request down with the declaration: MongoDB's log takes no messages."""
        if request.path not in self._capture.tables:
            raise CaptureError(
                f"capture {self._capture.name!r} has no collection {request.path!r}",
                hint=f"it has {', '.join(self._capture.tables)}",
            )
        if request.is_range:
            raise CaptureError("a collection is read again as a whole", hint="leave --after and --last out")
        store = Store(self._settings)
        known = store.get(self._capture.name)
        store.put(replace(known, requests=(*known.requests, request)))

    def role(self, name: str) -> str:
        """Return what makes the user, for mongosh."""
        split = [path.partition(".") for path in self._capture.tables]
        privileges = [
            {"resource": {"db": db, "collection": each}, "actions": ["find", "changeStream"]}
            for db, _, each in split
        ]
        privileges += [
            {"resource": {"db": db, "collection": ""}, "actions": ["listCollections"]}
            for db in sorted({db for db, _, _ in split})
        ]
        spelled, quoted = json.dumps(privileges, indent=2), json.dumps(name)
        return "\n".join(
            [
                f"// The user of capture {self._capture.name}: it reads its collections and their changes.",
                'db = db.getSiblingDB("admin")',
                f"db.createRole({{role: {quoted}, roles: [], privileges: {spelled}}})",
                f"db.createUser({{user: {quoted}, pwd: passwordPrompt(), roles: [{quoted}]}})",
            ]
        )

    def release(self, seconds: float) -> str:
        """Nothing is kept for a capture: only wait until nobody runs it."""
        store, name = Store(self._settings), self._capture.name
        deadline = time.monotonic() + seconds
        while holder := self._holder(store.position(name)):
            if time.monotonic() > deadline:
                raise CaptureError(
                    f"the capture is run by {holder}, or was killed a moment ago",
                    hint="stop that one first, or try again in a minute",
                )
            time.sleep(0.2)
        return ""

    def _holder(self, position: Position | None) -> str:
        """Say who runs the capture; nothing if nobody has written for some heartbeats."""
        state = Store(self._settings).state(self._capture.name)
        longest = _LIVELY * duration(self._capture.heartbeat).total_seconds()
        last = max(position.written if position else 0.0, state.at)
        is_alive = state.state == "running" and time.time() - last < longest
        return f"process {state.process}" if is_alive else ""
