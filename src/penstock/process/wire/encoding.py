"""Encoding: the columns of an event class as the bytes that the topic's codec reads."""

import struct
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro

from penstock.events.kinds import Fixed, Kind, Many, Mapped, Maybe, Record, Scalar, fields_of
from penstock.log import Topic
from penstock.process.wire.protobuf import to_protobuf
from penstock.schemas import NumberedSchema

_JSON_OPTIONS = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'",
    "dateFormat": "yyyy-MM-dd",
    "ignoreNullFields": "false",
}


def value_bytes(
    topic: Topic[Any], columns: dict[str, Column], schema: NumberedSchema | None, is_there: Column
) -> Column:
    """Return the value of a message; `columns` are the fields of the event, in their order.

    Where there is no event, as `is_there` says, Python is not asked for one.
    """
    if schema is None:
        return json_text(topic.event, columns).cast("binary")
    header = F.lit(struct.pack(">bI", 0, schema.id))
    return F.concat(header, _body(topic, columns, schema, is_there))


def _body(topic: Topic[Any], columns: dict[str, Column], schema: NumberedSchema, is_there: Column) -> Column:
    event = F.struct(*(column.alias(name) for name, column in columns.items()))
    match topic.format:
        case "avro":
            return to_avro(event, schema.text)
        case "protobuf":
            return to_protobuf(F.when(is_there, event), topic.event, schema)
    return json_text(topic.event, columns).cast("binary")


def json_text(cls: type, columns: dict[str, Column]) -> Column:
    """Return an event as JSON: decimals as text, times in UTC."""
    kinds = {field.name: field.kind for field in fields_of(cls)}
    spelled = [_spelled(kinds[name], column).alias(name) for name, column in columns.items()]
    return F.to_json(F.struct(*spelled), _JSON_OPTIONS)


def key_bytes(topic: Topic[Any], columns: dict[str, Column]) -> Column:
    """Return the key of a message, as `penstock.log.topic.key_bytes` writes it."""
    if topic.key is None:
        return F.lit(None).cast("binary")
    kind = next(field.kind for field in fields_of(topic.event) if field.name == topic.key)
    column = columns[topic.key]
    return (
        column.cast("string").cast("binary")
        if kind in (Scalar(int), Maybe(Scalar(int)))
        else column.cast("binary")
    )


def _spelled(kind: Kind, column: Column) -> Column:
    """Write decimals out as text, wherever they stand."""
    if not _holds_decimal(kind):
        return column
    match kind:
        case Maybe(inner):
            return _spelled(inner, column)
        case Many(item):
            return F.transform(column, lambda each: _spelled(item, each))
        case Mapped(value):
            return F.transform_values(column, lambda _, each: _spelled(value, each))
        case Record(cls):
            fields = [_spelled(each.kind, column[each.name]).alias(each.name) for each in fields_of(cls)]
            return F.when(column.isNotNull(), F.struct(*fields))
    return column.cast("string")


def _holds_decimal(kind: Kind) -> bool:
    match kind:
        case Maybe(inner) | Many(inner) | Mapped(inner):
            return _holds_decimal(inner)
        case Record(cls):
            return any(_holds_decimal(field.kind) for field in fields_of(cls))
    return isinstance(kind, Fixed)
