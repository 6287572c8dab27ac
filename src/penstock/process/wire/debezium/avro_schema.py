"""Avro schemas of Debezium's: what Connect says of a type, in words that Avro's readers know."""

from typing import Any

from penstock.documents import Json

_LOGICAL_TYPES = {
    "io.debezium.time.Timestamp": "timestamp-millis",
    "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
    "io.debezium.time.MicroTimestamp": "timestamp-micros",
    "io.debezium.time.Date": "date",
    "org.apache.kafka.connect.data.Date": "date",
}
_INSIDE = ("type", "items", "values", "fields")
_MOST_DIGITS = 38  # of Spark's decimals; Connect says 64 where it does not know


def with_logical_types(schema: Json) -> Json:
    """Return a schema in which times, dates and decimals are Avro's own, as their `connect.name` says.

    >>> with_logical_types({"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"})["logicalType"]
    'timestamp-micros'
    """
    if isinstance(schema, list):
        return [with_logical_types(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    inside = {name: with_logical_types(schema[name]) for name in _INSIDE if name in schema}
    return {**schema, **inside, **_logical_type(schema)}


def fields_in(schema: Json) -> frozenset[str]:
    """Return the names of a record's fields; what is no record has none."""
    is_record = isinstance(schema, dict) and schema.get("type") == "record"
    return frozenset(each["name"] for each in schema["fields"]) if is_record else frozenset()


def _logical_type(schema: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("connect.name")
    if isinstance(name, str) and name in _LOGICAL_TYPES:
        return {"logicalType": _LOGICAL_TYPES[name]}
    if schema.get("logicalType") == "decimal" and isinstance(schema.get("precision"), int):
        return {"precision": min(schema["precision"], _MOST_DIGITS)}
    return {}
