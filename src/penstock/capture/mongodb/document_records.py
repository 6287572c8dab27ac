"""Changes of documents as records, in the envelope of Debezium's connector for MongoDB."""

import time
from typing import Any

import msgspec

from penstock.capture.debezium_records import VERSION, SourceBlock
from penstock.capture.mongodb.change import DocumentChange, timestamp_of
from penstock.capture.mongodb.extended_json import key_text, text
from penstock.capture.records import Origin
from penstock.capture.tables import TableShape
from penstock.documents import JsonObject
from penstock.log.transactional_writer import Message

_json = msgspec.json.encode


class NoTables:
    """The source blocks of tables, of which MongoDB has none."""

    def of_table(self, name: str, shape: TableShape) -> SourceBlock:
        raise NotImplementedError("documents are not rows: DocumentRecords makes their records")


class DocumentRecords:
    """Makes the records of one collection."""

    def __init__(self, topic: str, name: str, path: str) -> None:
        self.topic, self._name = topic, name
        self._database, _, self._collection = path.partition(".")

    def of_document(self, change: DocumentChange, snapshot: str = "false") -> list[Message]:
        """Return the record of a change, and behind a deletion the tombstone."""
        key = key_of(change.id)
        made: list[Message] = [(self.topic, key, self._envelope(change, snapshot), None)]
        return [*made, (self.topic, key, None, None)] if change.op == "d" else made

    def deletion(self, key: bytes, origin: Origin, lsn: int) -> list[Message]:
        """Return the records that delete a document of which only the key is known."""
        gone = DocumentChange("d", None, None, lsn)
        return [(self.topic, key, self._envelope(gone, origin.snapshot), None), (self.topic, key, None, None)]

    def _envelope(self, change: DocumentChange, snapshot: str) -> bytes:
        now = time.time_ns()
        envelope: JsonObject = {
            "before": None if change.before is None else text(change.before),
            "after": None if change.after is None else text(change.after),
            "updateDescription": _description(change.update),
            "source": self._source(change, snapshot, now),
            "transaction": None,
            "op": change.op,
            "ts_ms": now // 1_000_000,
            "ts_us": now // 1000,
            "ts_ns": now,
        }
        return _json(envelope)

    def _source(self, change: DocumentChange, snapshot: str, now: int) -> JsonObject:
        at = timestamp_of(change.time)
        seconds = now // 1_000_000_000 if snapshot != "false" else at.time
        return {
            "version": VERSION,
            "connector": "mongodb",
            "name": self._name,
            "ts_ms": seconds * 1000,
            "snapshot": snapshot,
            "db": self._database,
            "sequence": None,
            "ts_us": seconds * 1_000_000,
            "ts_ns": seconds * 1_000_000_000,
            "collection": self._collection,
            "ord": at.inc,
            "lsid": None if change.session is None else text(change.session),
            "txnNumber": change.transaction,
            "wallTime": change.wall,
        }


def key_of(id: Any) -> bytes:
    """Return the key of a document's records.

    >>> key_of("a")
    b'{"id":"\\\\"a\\\\""}'
    """
    return _json({"id": key_text(id)})


def _description(update: dict[str, Any] | None) -> JsonObject | None:
    """Say what an update has changed; what it did not do is null."""
    if update is None:
        return None
    truncated = [
        {"field": each["field"], "size": int(each["newSize"])} for each in update.get("truncatedArrays") or []
    ]
    updated = update.get("updatedFields")
    return {
        "removedFields": list(update.get("removedFields") or []) or None,
        "updatedFields": text(updated) if updated else None,
        "truncatedArrays": truncated or None,
    }
