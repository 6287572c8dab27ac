"""The Avro schemas that Kafka Connect would register for Debezium's envelopes."""

import re
from typing import Any

from penstock.capture.tables import Column, TableShape
from penstock.capture.types import Type
from penstock.capture.values import Encoding
from penstock.documents import JsonObject

_TIME = "io.debezium.time."
_PLAIN: dict[str, Any] = {
    "bool": "boolean",
    "int2": {"type": "int", "connect.type": "int16"},
    "int4": "int",
    "int8": "long",
    "oid": "long",
    "float4": "float",
    "float8": "double",
    "bytea": "bytes",
    "blob": "bytes",
}
_NAMED = {
    "span": ("long", f"{_TIME}MicroTime"),
    "date": ("int", f"{_TIME}Date"),
    "timestamptz": ("string", f"{_TIME}ZonedTimestamp"),
    "timetz": ("string", f"{_TIME}ZonedTime"),
    "json": ("string", "io.debezium.data.Json"),
    "jsonb": ("string", "io.debezium.data.Json"),
    "uuid": ("string", "io.debezium.data.Uuid"),
    "xml": ("string", "io.debezium.data.Xml"),
    "tsvector": ("string", "io.debezium.data.TsVector"),
}
SourceSchema = tuple[str, list[tuple[str, Any]]]  # the namespace of a source block, and its fields
POSTGRES_SOURCE: SourceSchema = ("io.debezium.connector.postgresql", [
    ("version", "string"), ("connector", "string"), ("name", "string"), ("ts_ms", "long"),
    ("snapshot", ["null", "string"]), ("db", "string"), ("sequence", ["null", "string"]),
    ("ts_us", ["null", "long"]), ("ts_ns", ["null", "long"]), ("schema", "string"), ("table", "string"),
    ("txId", ["null", "long"]), ("lsn", ["null", "long"]), ("xmin", ["null", "long"]),
    ("origin", ["null", "string"]), ("origin_lsn", ["null", "long"]),
])  # fmt: skip
MARIADB_SOURCE: SourceSchema = ("io.debezium.connector.mariadb", [
    ("version", "string"), ("connector", "string"), ("name", "string"), ("ts_ms", "long"),
    ("snapshot", ["null", "string"]), ("db", "string"), ("sequence", ["null", "string"]),
    ("ts_us", ["null", "long"]), ("ts_ns", ["null", "long"]), ("table", ["null", "string"]),
    ("server_id", "long"), ("gtid", ["null", "string"]), ("file", "string"), ("pos", "long"),
    ("row", "int"), ("thread", ["null", "long"]), ("query", ["null", "string"]),
])  # fmt: skip
_TRANSACTION = [("id", "string"), ("total_order", "long"), ("data_collection_order", "long")]


def key_schema(space: str, shape: TableShape, encoding: Encoding) -> JsonObject:
    """Return the schema of a table's keys."""
    fields = [{"name": avro_name(c.name), "type": avro_type(c.type, encoding)} for c in shape.key_columns]
    return {
        "type": "record",
        "name": "Key",
        "namespace": space,
        "fields": fields,
        "connect.name": f"{space}.Key",
    }


def value_schema(space: str, shape: TableShape, encoding: Encoding, source: SourceSchema) -> JsonObject:
    """Return the schema of a table's envelopes."""
    row = {
        "type": "record",
        "name": "Value",
        "fields": [_field(each, encoding) for each in shape.columns],
        "connect.name": f"{space}.Value",
    }
    times = [_optional(name, "long") for name in ("ts_ms", "ts_us", "ts_ns")]
    fields = [
        _optional("before", row),
        _optional("after", "Value"),
        {"name": "source", "type": _record("Source", *source)},
        _optional("transaction", _record("block", "event", _TRANSACTION)),
        {"name": "op", "type": "string"},
        *times,
    ]
    name = {"name": "Envelope", "namespace": space, "connect.name": f"{space}.Envelope"}
    return {"type": "record", **name, "fields": fields}


def avro_type(type: Type, encoding: Encoding) -> Any:
    """Return how Avro has a type, with the name by which Connect knows it."""
    if type.element is not None:
        return {"type": "array", "items": ["null", avro_type(type.element, encoding)]}
    if type.name in ("time", "timestamp"):
        return _time_type(type)
    if type.name in ("numeric", "money"):
        return _decimal_type(type, encoding)
    if type.name == "interval":
        text = encoding.intervals == "string"
        return _named("string", f"{_TIME}Interval") if text else _named("long", f"{_TIME}MicroDuration")
    if type.name in ("bit", "varbit"):
        return "boolean" if type.modifier == 1 else _named("bytes", "io.debezium.data.Bits")
    if type.name == "geometry":
        return _record("Geometry", "io.debezium.data.geometry", [("wkb", "bytes"), ("srid", ["null", "int"])])
    if type.name == "point":
        fields = [("x", "double"), ("y", "double"), ("wkb", ["null", "bytes"]), ("srid", ["null", "int"])]
        return _record("Point", "io.debezium.data.geometry", fields)
    if type.name in _NAMED:
        return _named(*_NAMED[type.name])
    return _PLAIN.get(type.name, "string")


def avro_name(name: str) -> str:
    """Return a name as Avro takes it."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{made}" if made[:1].isdigit() else made


def _time_type(type: Type) -> JsonObject:
    if type.precision <= 3:
        return _named("int", f"{_TIME}Time") if type.name == "time" else _named("long", f"{_TIME}Timestamp")
    return _named("long", f"{_TIME}MicroTime" if type.name == "time" else f"{_TIME}MicroTimestamp")


def _decimal_type(type: Type, encoding: Encoding) -> Any:
    if encoding.decimals != "precise":
        return "string" if encoding.decimals == "string" else "double"
    if type.scale is None:
        fields = [("scale", "int"), ("value", "bytes")]
        return _record("VariableScaleDecimal", "io.debezium.data", fields)
    name, scale = "org.apache.kafka.connect.data.Decimal", type.scale
    parameters = {"scale": str(scale), "connect.decimal.precision": str(type.digits or 64)}
    return {"type": "bytes", "connect.name": name, "connect.parameters": parameters, "connect.version": 1}


def _field(column: Column, encoding: Encoding) -> JsonObject:
    """All columns may be null: of a deleted row only the key is known."""
    return _optional(avro_name(column.name), avro_type(column.type, encoding))


def _optional(name: str, type: Any) -> JsonObject:
    return {"name": name, "type": ["null", type], "default": None}


def _named(type: str, name: str) -> JsonObject:
    return {"type": type, "connect.version": 1, "connect.name": name}


def _record(name: str, space: str, fields: list[tuple[str, Any]]) -> JsonObject:
    made = [
        {"name": field, "type": type} | ({"default": None} if isinstance(type, list) else {})
        for field, type in fields
    ]
    return {
        "type": "record",
        "name": name,
        "namespace": space,
        "fields": made,
        "connect.name": f"{space}.{name}",
    }
