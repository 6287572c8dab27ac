"""Documents of a collection in the order of their ids, some at a time."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import bson
from bson.timestamp import Timestamp

from penstock.capture.mongodb.client import Client, JsonDocument, explained

Key = tuple[str, ...]


@dataclass
class Chunk:
    """The documents behind the id `after`, at most `size`; `last` is the id of the last that was read."""

    size: int
    after: Key | None = None
    documents: int = 0
    last: Key | None = None
    is_final: bool = False  # whether no more follow

    def read(self, client: Client, path: str, seen: Timestamp) -> Iterator[JsonDocument]:
        """Yield documents as they are at `seen` or later: never older than what the stream has brought."""
        with explained(), client.session() as session:
            session.advance_operation_time(seen)
            found = client.collection(path).find(_behind(self.after), session=session)
            for each in found.sort("_id", 1).limit(self.size):
                self.documents += 1
                self.last = _spelled(each["_id"])
                yield each
        self.is_final = self.documents < self.size


def _behind(after: Key | None) -> dict[str, Any]:
    """A plain $gt would see only ids of the same type."""
    if after is None:
        return {}
    return {"$expr": {"$gt": ["$_id", {"$literal": _id(after)}]}}


def _spelled(id: Any) -> Key:
    return (bson.encode({"_id": id}).hex(),)


def _id(key: Key) -> Any:
    return bson.decode(bytes.fromhex(key[0]))["_id"]
