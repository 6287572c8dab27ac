"""The transaction topic: where each transaction begins and ends, and each event's place in it."""

import io
import json
from collections import Counter
from collections.abc import Callable
from struct import pack
from typing import Any

import fastavro
import msgspec

from penstock.documents import JsonObject
from penstock.log.transactional_writer import Message
from penstock.schemas import SchemaDirectory
from penstock.schemas.compatibility import SchemaKind

Write = Callable[[Any], bytes]
_SPACE = "io.debezium.connector.common"
_KEY: list[JsonObject] = [{"name": "id", "type": "string"}]
_COLLECTION = {
    "type": "record",
    "name": "Collection",
    "fields": [{"name": "data_collection", "type": "string"}, {"name": "event_count", "type": "long"}],
}
_VALUE: list[JsonObject] = [
    {"name": "status", "type": "string"},
    {"name": "id", "type": "string"},
    {"name": "event_count", "type": ["null", "long"], "default": None},
    {
        "name": "data_collections",
        "type": ["null", {"type": "array", "items": _COLLECTION}],
        "default": None,
    },
    {"name": "ts_ms", "type": "long"},
]


class Transactions:
    """Follows the transactions of a capture and writes of them, as JSON or as Avro."""

    def __init__(self, topic: str, schemas: SchemaDirectory | None = None) -> None:
        self.topic = topic
        self.write_key: Write = msgspec.json.encode
        self.write_value: Write = msgspec.json.encode
        if schemas is not None:
            self.write_key = _avro(schemas, f"{topic}-key", "TransactionMetadataKey", _KEY)
            self.write_value = _avro(schemas, f"{topic}-value", "TransactionMetadataValue", _VALUE)

    def begin(self, id: str, committed: int) -> "TransactionEvents":
        """Return the events of a transaction, of which there are none yet."""
        return TransactionEvents(self, id, committed // 1000)


class TransactionEvents:
    """Numbers the events of one transaction; its records are written only if it has events."""

    def __init__(self, transactions: Transactions, id: str, committed: int) -> None:
        self._transactions, self._id, self._committed = transactions, id, committed
        self._events: Counter[str] = Counter()
        self._total, self._is_open = 0, False

    def place(self, table: str) -> bytes:
        """Count an event of a table; return what its envelope says of the transaction."""
        self._total += 1
        self._events[table] += 1
        order = (self._total, self._events[table])
        return b'{"id":"%b","total_order":%d,"data_collection_order":%d}' % (self._id.encode(), *order)

    def opened(self) -> list[Message]:
        """Return the record of the beginning, once, when the first event was counted."""
        if self._is_open or not self._total:
            return []
        self._is_open = True
        return [self._record("BEGIN", None, None)]

    def closed(self) -> list[Message]:
        """Return the record of the end, unless the transaction had no event."""
        if not self._total:
            return []
        counts = [{"data_collection": path, "event_count": many} for path, many in self._events.items()]
        return [self._record("END", self._total, counts)]

    def _record(self, status: str, total: int | None, counts: list[JsonObject] | None) -> Message:
        value = {
            "status": status,
            "id": self._id,
            "event_count": total,
            "data_collections": counts,
            "ts_ms": self._committed,
        }
        made = self._transactions
        return made.topic, made.write_key({"id": self._id}), made.write_value(value), None


def _avro(schemas: SchemaDirectory, subject: str, name: str, fields: list[JsonObject]) -> Write:
    schema = {"type": "record", "name": name, "namespace": _SPACE, "fields": fields}
    head = pack(">bI", 0, schemas.id_for(subject, SchemaKind.AVRO, json.dumps(schema)))
    parsed = fastavro.parse_schema(schema)

    def write(datum: Any) -> bytes:
        made = io.BytesIO()
        made.write(head)
        fastavro.schemaless_writer(made, parsed, datum)
        return made.getvalue()

    return write
