"""The change stream of one collection, from a place on."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bson.json_util import CANONICAL_JSON_OPTIONS, dumps, loads

from penstock.capture.mongodb.change import INVALIDATE, time_of, timestamp_of
from penstock.capture.mongodb.client import Client, JsonDocument, explained
from penstock.capture.position import StreamPlace

if TYPE_CHECKING:
    from pymongo.change_stream import CollectionChangeStream


class ChangeStream:
    """Reads events; `place` is behind the last one that was read, or further where nothing was for us."""

    def __init__(self, client: Client, path: str, place: StreamPlace, wait: float) -> None:
        self._client, self._path, self._wait = client, path, wait
        self.place = place
        self._stream = self._opened()

    def read(self, most: int) -> Iterator[JsonDocument]:
        """Yield what is there, at most so many; where there is nothing, the server waits a moment."""
        for _ in range(most):
            with explained():
                event = self._stream.try_next()
            if event is None:
                self._move(None, self.place.time)
                return
            ends = event["operationType"] == INVALIDATE
            self._move(event["_id"] if ends else None, time_of(event.get("clusterTime")))
            yield event
            if ends:
                self._again()
                return

    def close(self) -> None:
        self._stream.close()

    def _move(self, token: Any, time: int) -> None:
        found = token or self._stream.resume_token
        spelled = dumps(found, json_options=CANONICAL_JSON_OPTIONS) if found else self.place.token
        self.place = replace(self.place, time=max(time, self.place.time), token=spelled)

    def _again(self) -> None:
        """Go on behind the end of a collection: another one of its name may come."""
        self.close()
        self._stream = self._opened()

    def _opened(self) -> "CollectionChangeStream[JsonDocument]":
        place, start = self.place, {}
        if place.token:
            start["start_after"] = loads(place.token)
        else:
            start["start_at_operation_time"] = timestamp_of(place.time + 1)
        with explained():
            return self._client.collection(self._path).watch(
                full_document="updateLookup", max_await_time_ms=int(self._wait * 1000), **start
            )
