"""Bulk requests: every item is done, tried again within a bound, or an error that names its row."""

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import NamedTuple

import msgspec

from penstock.documents import JsonObject
from penstock.errors import DataError, FencedError, SinkError
from penstock.targets.opensearch.client import BUSY, WAITS, Client, lines, path_of, refused, wait
from penstock.targets.opensearch.indices import Generation

_MOST_ROWS, _MOST_BYTES = 5_000, 5 * 1024 * 1024
_TYPE = "application/x-ndjson"
_OPTIONS = "require_alias=true&filter_path=errors,items.*.status,items.*.error"


class Item(NamedTuple):
    """A change of a document, and the version that it makes of it."""

    key: str
    source: bytes | None
    version: int

    def parts(self) -> list[bytes]:
        """Return the lines of a bulk request."""
        about = {"_id": self.key, "version": self.version, "version_type": "external_gte"}
        kind = "delete" if self.source is None else "index"
        head = msgspec.json.encode({kind: about})
        return [head] if self.source is None else [head, self.source]


def chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Yield items in pieces that a server takes at once."""
    chunk: list[Item] = []
    size = 0
    for item in items:
        chunk.append(item)
        size += len(item.source or b"") + len(item.key)
        if len(chunk) >= _MOST_ROWS or size >= _MOST_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def send(client: Client, generation: Generation, items: list[Item]) -> None:
    """Send items; those that the server was too busy for are sent again."""
    path = f"{path_of(generation.writing)}/_bulk?{_OPTIONS}"
    for pause in (*WAITS, None):
        answer = client.send("POST", path, lines(part for item in items for part in item.parts()), _TYPE)
        if not answer.ok:
            raise refused("POST", f"{generation.writing}/_bulk", answer)
        found = answer.json()
        items = list(_busy(items, found["items"])) if found["errors"] else []
        if not items:
            return
        if pause is not None:
            wait(pause)
    raise SinkError(
        f"OpenSearch was too busy for {len(items):,} rows, {len(WAITS) + 1} times; one is {items[0].key}",
        hint="the batch is written again; see how much the server has to do",
    )


def _busy(items: list[Item], results: list[JsonObject]) -> Iterator[Item]:
    for item, result in zip(items, results, strict=True):
        (done,) = result.values()
        if not _is_done(item, done):
            yield item


def _is_done(item: Item, done: JsonObject) -> bool:
    """Whether an item needs no second try; what no try can help is raised."""
    status, error = done["status"], done.get("error") or {}
    if not error:
        return True  # also a deletion of what is not there
    kind = error.get("type", "")
    if kind == "version_conflict_engine_exception":
        return True  # a later change is there already
    if status in BUSY:
        return False
    if status == HTTPStatus.NOT_FOUND:
        raise FencedError(
            f"the index of row {item.key} is gone: {error.get('reason')}",
            hint="it was swapped for a rebuilt one, or removed: start the flow again",
        )
    reason, cause = error.get("reason", kind), (error.get("caused_by") or {}).get("reason", "")
    raise DataError(
        f"OpenSearch refused the row {item.key}: {reason}{f' ({cause})' if cause else ''}",
        hint="fix the flow or the data; the batch is not written down as done",
    )
