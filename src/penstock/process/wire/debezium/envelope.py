"""Debezium's envelope: the operation, the row before and after it, and where the change comes from."""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from penstock.events.kinds import Scalar
from penstock.log import Topic
from penstock.process.wire.coercion import Seen, coerced, wire_schema
from penstock.process.wire.debezium.avro_schema import fields_in, with_logical_types
from penstock.process.wire.debezium.json_values import COLUMNS
from penstock.process.wire.parsing import SCHEMA_ID, TEXT, Parser, body, parse_avro, parse_json
from penstock.schemas import SchemaKind, WrittenSchema, spark_schema

OP, BEFORE, AFTER, COLUMN_TYPES = "op", "before", "after", "columns"
PROVENANCE: dict[str, DataType] = {
    "lsn": LongType(),
    "transaction": StringType(),
    "committed": TimestampType(),
    "snapshot": BooleanType(),
}
_SOURCE = (
    StructType()
    .add("lsn", LongType())
    .add("txId", StringType())
    .add("ts_us", LongType())
    .add("ts_ms", LongType())
    .add("snapshot", StringType())
)
_ROW = StructType().add("field", StringType()).add("fields", COLUMNS)
_SCHEMA = StructType().add("fields", ArrayType(_ROW))


def change_parsers(topic: Topic[Any], schemas: Mapping[int, WrittenSchema]) -> list[Parser]:
    """Return one parser for JSON, which may have its schema beside it or not; else one for each schema."""
    if not topic.is_registered:
        return [Parser("_parsed", parse_json(F.col(TEXT), _message(topic.event)), texts=True)]
    return [_avro_parser(id, schema) for id, schema in schemas.items()]


def change_type(cls: type) -> StructType:
    """Return the type of `_change`: what is known of a change beside the row that it left."""
    made = StructType().add(OP, StringType()).add(BEFORE, spark_schema(cls).toNullable())
    for name, type in PROVENANCE.items():
        made.add(name, type)
    return made


def change_parts(rows: DataFrame, parser: Parser) -> list[Column]:
    """Return the parts of a change as they were parsed, the same ones for every parser.

    Each is a column: of a struct, Spark would compute a part anew wherever it is used.
    """
    part = _wrapped_or_bare(parser.value) if parser.texts else parser.value.__getitem__
    source = part("source") if "source" in _names(rows, parser.value) else F.lit(None).cast(_SOURCE)
    parts = {
        OP: part(OP).cast("string"),
        BEFORE: part(BEFORE),
        AFTER: part(AFTER),
        COLUMN_TYPES: _column_types(parser),
        **_provenance(source, _names(rows, source)),
    }
    return [column.alias(part_name(parser, name)) for name, column in parts.items()]


def part_name(parser: Parser, part: str) -> str:
    """Return the name of the column that holds a part of a parsed change."""
    return f"{parser.name}_{part}"


def _message(cls: type) -> StructType:
    row = wire_schema(cls)
    envelope = StructType().add(BEFORE, row).add(AFTER, row).add("source", _SOURCE).add(OP, StringType())
    return StructType([*envelope.fields]).add("schema", _SCHEMA).add("payload", envelope)


def _avro_parser(id: int, schema: WrittenSchema) -> Parser:
    name, text = f"_parsed_{id}", json.dumps(with_logical_types(_read(schema)))
    refusal = _refusal(schema)
    parsed = F.lit(None) if refusal else F.when(F.col(SCHEMA_ID) == id, parse_avro(body(), text, text))
    return Parser(name, parsed, texts=False, schema_id=id, version=schema.version, refusal=refusal)


def _refusal(schema: WrittenSchema) -> str | None:
    if schema.kind is not SchemaKind.AVRO:
        return f"the message's schema is {schema.kind}, the topic's {SchemaKind.AVRO}"
    if not {OP, BEFORE, AFTER} <= fields_in(_read(schema)):
        return "the message's schema is no envelope of Debezium's, with 'op', 'before' and 'after'"
    return None


def _read(schema: WrittenSchema) -> Any:
    return json.loads(schema.text) if schema.kind is SchemaKind.AVRO else None


def _wrapped_or_bare(value: Column) -> Callable[[str], Column]:
    payload = value["payload"]
    return lambda name: F.when(payload.isNotNull(), payload[name]).otherwise(value[name])


def _column_types(parser: Parser) -> Column:
    if not parser.texts:
        return F.lit(None).cast(COLUMNS)
    rows = F.filter(parser.value["schema"]["fields"], lambda each: each["field"] == AFTER)
    return F.get(rows, F.lit(0))["fields"]


def _names(rows: DataFrame, struct: Column) -> list[str]:
    type: DataType = rows.select(struct).schema[0].dataType
    return type.names if isinstance(type, StructType) else []


def _provenance(source: Column, names: list[str]) -> dict[str, Column]:
    def part(name: str, type: str) -> Column:
        return (source[name] if name in names else F.lit(None)).try_cast(type)

    micros = F.coalesce(part("ts_us", "long"), F.try_multiply(part("ts_ms", "long"), F.lit(1000)))
    time = Seen(F.timestamp_micros(micros), TimestampType(), texts=False)
    snapshot = F.coalesce(part("snapshot", "string"), F.lit("false")) != "false"
    parts = (
        part("lsn", "long"),
        part("txId", "string"),
        coerced(Scalar(datetime), TimestampType(), time),
        snapshot,
    )
    return dict(zip(PROVENANCE, parts, strict=True))
