"""Debezium's envelope as Avro, with the schemas that Kafka Connect would register."""

import io
import json
from base64 import b64decode
from collections.abc import Callable
from struct import pack
from typing import Any

import fastavro
import msgspec

from penstock.capture.avro_schema import avro_name, key_schema, value_schema
from penstock.capture.debezium_records import DebeziumRecords
from penstock.capture.pgoutput import Change, Values
from penstock.capture.records import Origin
from penstock.capture.tables import TableShape
from penstock.capture.types import Type
from penstock.capture.values import Encoding
from penstock.documents import JsonObject
from penstock.errors import CaptureError
from penstock.log.transactional_writer import Message
from penstock.schemas import SchemaDirectory
from penstock.schemas.compatibility import SchemaKind

Convert = Callable[[Any], Any]


class AvroRecords:
    """Writes what `DebeziumRecords` makes as Avro, each record behind the number of its schema."""

    def __init__(
        self, inner: DebeziumRecords, shape: TableShape, encoding: Encoding, schemas: SchemaDirectory
    ) -> None:
        self.topic, self.has_key = inner.topic, inner.has_key
        self._inner, self._path = inner, shape.path
        space = ".".join(avro_name(part) for part in inner.topic.split("."))
        key, value = (
            key_schema(space, shape, encoding),
            value_schema(space, shape, encoding, inner.source_schema),
        )
        self._key, self._key_head = _registered(schemas, f"{inner.topic}-key", key)
        self._value, self._value_head = _registered(schemas, f"{inner.topic}-value", value)
        self._converts = {each.name: _converter(each.type, encoding) for each in shape.columns}
        self._columns = {avro_name(each.name) for each in shape.columns}
        self._schemas = schemas
        if len(self._columns) < len(shape.columns):
            raise CaptureError(
                f"two columns of {shape.path!r} would have one name in Avro",
                hint="capture it as debezium-json",
            )

    def key_of(self, values: Values) -> bytes | None:
        return self._inner.key_of(values)

    def of(self, change: Change, origin: Origin, lsn: int) -> list[Message]:
        return [self._written(each) for each in self._inner.of(change, origin, lsn)]

    def deletion(self, key: bytes, origin: Origin, lsn: int) -> list[Message]:
        """The key comes from the log, and is Avro already."""
        number = int.from_bytes(key[1:5], "big")  # the schema that it was written with
        schema = json.loads(self._schemas.written(f"{self.topic}-key", number).text)
        row: Any = fastavro.schemaless_reader(io.BytesIO(key[5:]), fastavro.parse_schema(schema), None)
        before = {name: value for name, value in row.items() if name in self._columns}
        plain = self._inner.deletion(b"{}", origin, lsn)[0]
        value = msgspec.json.decode(plain[2] or b"")
        made = self._value_of(value | {"before": before})
        return [(self.topic, key, made, None), (self.topic, key, None, None)]

    def truncation(self, origin: Origin, lsn: int) -> list[Message]:
        """No key of the table's schema could stand for it: the deletions of its rows have to do."""
        made = [] if self.has_key else self._inner.truncation(origin, lsn)
        return [(topic, None, self._value_of(_json(value)), None) for topic, _, value, _ in made]

    def _written(self, message: Message) -> Message:
        topic, key, value, headers = message
        try:
            made = None if value is None else self._value_of(self._converted(_json(value)))
            written = (
                None if key is None else self._with_head(self._key_head, self._key, self._row(_json(key)))
            )
        except (ValueError, TypeError, AttributeError) as error:
            raise CaptureError(
                f"a row of {self._path!r} has no place in its Avro schema ({type(error).__name__})",
                hint="an array of several dimensions has none; capture the table as debezium-json",
            ) from None  # its text has the row's values
        return topic, written, made, headers

    def _converted(self, envelope: JsonObject) -> JsonObject:
        rows = {name: self._row(envelope[name]) for name in ("before", "after")}
        return {**envelope, **rows}

    def _row(self, row: JsonObject | None) -> JsonObject | None:
        if row is None:
            return None
        converts = self._converts
        return {
            avro_name(name): None if value is None else converts[name](value) for name, value in row.items()
        }

    def _value_of(self, envelope: JsonObject) -> bytes:
        return self._with_head(self._value_head, self._value, envelope)

    def _with_head(self, head: bytes, schema: Any, datum: Any) -> bytes:
        made = io.BytesIO()
        made.write(head)
        fastavro.schemaless_writer(made, schema, datum)
        return made.getvalue()


def _registered(schemas: SchemaDirectory, subject: str, schema: JsonObject) -> tuple[Any, bytes]:
    text = json.dumps(schema, separators=(",", ":"))
    return fastavro.parse_schema(schema), pack(">bI", 0, schemas.id_for(subject, SchemaKind.AVRO, text))


def _converter(type: Type, encoding: Encoding) -> Convert:
    """Return what makes a value of Avro's of one of JSON's."""
    if type.element is not None:
        inner = _converter(type.element, encoding)
        return lambda items: [None if each is None else inner(each) for each in items]
    if type.name in ("float4", "float8") or (
        type.name in ("numeric", "money") and encoding.decimals == "double"
    ):
        return float
    if type.name == "uint8":  # larger than Avro's longs
        return str
    if type.name in ("bytea", "blob") or (type.name in ("bit", "varbit") and type.modifier != 1):
        return b64decode
    if type.name in ("point", "geometry"):
        return lambda point: {**point, "wkb": b64decode(point["wkb"])}
    if type.name in ("numeric", "money") and encoding.decimals == "precise":
        return _precise
    return _same


def _precise(value: Any) -> Any:
    return {**value, "value": b64decode(value["value"])} if isinstance(value, dict) else b64decode(value)


def _same(value: Any) -> Any:
    return value


def _json(text: bytes | None) -> Any:
    return msgspec.json.decode(text or b"null")
