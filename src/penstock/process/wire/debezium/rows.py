"""The row of a change, before or after it, as the fields of an event class."""

from datetime import date, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from penstock.events.kinds import Field, Fixed, Kind, Many, Mapped, Maybe, Scalar, fields_of
from penstock.log import Topic
from penstock.process.wire.coercion import Seen
from penstock.process.wire.debezium.envelope import COLUMN_TYPES, part_name
from penstock.process.wire.debezium.json_values import depends_on_schema, said_of, understood
from penstock.process.wire.event_fields import EventFields
from penstock.process.wire.parsing import Parser

_UNAVAILABLE = "__debezium_unavailable_value"


def understood_values(topic: Topic[Any], parser: Parser, part: str) -> list[Column]:
    """Return the values of a row that are to be taken as the schema beside them says, each as a column."""
    row, types = F.col(part_name(parser, part)), F.col(part_name(parser, COLUMN_TYPES))
    return [
        understood(field.kind, row[field.name], said_of(field.name, types)).alias(
            _value_name(parser, part, field)
        )
        for field in fields_of(topic.event)
        if parser.texts and depends_on_schema(field.kind)
    ]


def row_fields(rows: DataFrame, topic: Topic[Any], parser: Parser, part: str) -> EventFields:
    """Return the fields of the row in a `part` of a parsed change."""
    name = part_name(parser, part)
    row, type = F.col(name), rows.schema[name].dataType
    types = {each.name: each.dataType for each in type} if isinstance(type, StructType) else {}
    seen = {
        field.name: Seen(
            _value(parser, part, field),
            types[field.name],
            parser.texts or _may_be_spelled(field.kind),
            epoch=parser.texts,
        )
        for field in fields_of(topic.event)
        if field.name in types
    }
    if _is_id_of_event(topic):
        seen |= _id(topic, row, types)
    return EventFields(topic.event, f"{name}_coerced", seen)


def _value(parser: Parser, part: str, field: Field) -> Column:
    if parser.texts and depends_on_schema(field.kind):
        return F.col(_value_name(parser, part, field))
    return F.col(part_name(parser, part))[field.name]


def _value_name(parser: Parser, part: str, field: Field) -> str:
    return f"{part_name(parser, part)}_{field.name}"


def unavailable(fields: EventFields) -> Column:
    """Say which value Debezium did not see, because it was large and did not change; null if none."""
    fault = F.when(F.lit(False), F.lit(None).cast("string"))
    for field in fields_of(fields.cls):
        placeholder = _placeholder(field)
        if placeholder is not None:
            said = f"field {field.name!r} was not captured, as it is stored apart (TOAST) and did not change"
            hint = "; set the table's REPLICA IDENTITY to FULL"
            fault = fault.when(F.col(fields.name)[field.name] == F.lit(placeholder), F.lit(said + hint))
    return fault


def _placeholder(field: Field) -> str | bytes | None:
    kind = field.kind.inner if isinstance(field.kind, Maybe) else field.kind
    if kind == Scalar(str):
        return _UNAVAILABLE
    return _UNAVAILABLE.encode() if kind == Scalar(bytes) else None


def _may_be_spelled(kind: Kind) -> bool:
    """Whether Debezium writes such values as text also where there are types."""
    match kind:
        case Maybe(inner) | Many(inner) | Mapped(inner):
            return _may_be_spelled(inner)
        case Scalar(python):
            return python in (datetime, date)
    return isinstance(kind, Fixed)


def _is_id_of_event(topic: Topic[Any]) -> bool:
    return topic.key != "id" and any(
        field.name == "id" and field.kind == Scalar(str) for field in fields_of(topic.event)
    )


def _id(topic: Topic[Any], row: Column, types: dict[str, Any]) -> dict[str, Seen]:
    """Every event has an id: the row's own as text, or the text of its key where it has none."""
    named = [name for name in ("id", str(topic.key)) if name in types]
    if not named:
        return {}
    return {"id": Seen(F.coalesce(*(row[name].cast("string") for name in named)), StringType(), texts=False)}
