"""Kafka's key of a captured row, where a deletion has its key column from."""

import json
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.events.kinds import Field, fields_of
from penstock.log import Topic
from penstock.process.wire.coercion import Seen, coerced, wire_type
from penstock.process.wire.debezium.avro_schema import fields_in
from penstock.process.wire.decoding import not_known
from penstock.process.wire.json_text import json_text
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.parsing import MARKED, Parser, body, mark, parse_avro, parse_json, schema_id
from penstock.schemas import SchemaKind, WrittenSchema, spark_schema

KEY_SCHEMA_ID, KEY_MARK = "_key_schema", "_key_mark"


def key_columns(topic: Topic[Any]) -> list[Column]:
    """Return what has to be known of Kafka's key before it is parsed."""
    return [schema_id("key").alias(KEY_SCHEMA_ID), mark(topic, "key").alias(KEY_MARK)]


def key_parsers(topic: Topic[Any], known: KnownSchemas) -> list[Parser]:
    """Return one parser for JSON, else one for each schema that a key may have."""
    if not topic.is_registered:
        bare = StructType().add(str(topic.key), wire_type(key_field(topic).kind))
        wanted = StructType([*bare.fields]).add("payload", bare)
        parsed = parse_json(json_text(F.col("key"), F.col(KEY_MARK), MARKED), wanted)
        return [Parser("_parsed_key", parsed, texts=True, mark=KEY_MARK)]
    schemas = {**known.schemas, **known.keys}
    return [_avro_parser(id, each) for id, each in schemas.items() if _holds_key(topic, each)]


def key_of(rows: DataFrame, topic: Topic[Any], found: list[Parser], known: KnownSchemas) -> Column:
    """Return Kafka's key as the value of the key's field, or null; `rows` have what the parsers parsed."""
    if not topic.is_registered:
        return _json_key(topic, found[0])
    id = F.col(KEY_SCHEMA_ID)
    key = F.when(id.isNull(), F.lit(None).cast(_type(topic)))
    for parser in found:
        key = key.when(id == F.lit(parser.schema_id), _avro_key(rows, topic, parser))
    others = [*known.schemas, *known.keys, *known.unknown]
    return key.when(~id.isin(others), not_known(topic, id).cast(_type(topic)))


def key_field(topic: Topic[Any]) -> Field:
    """Return the field of a topic's key."""
    return next(each for each in fields_of(topic.event) if each.name == topic.key)


def _avro_parser(id: int, schema: WrittenSchema) -> Parser:
    parsed = parse_avro(body("key"), schema.text, schema.text, KEY_MARK)
    return Parser(
        f"_parsed_key_{id}",
        F.when(F.col(KEY_SCHEMA_ID) == id, parsed),
        texts=False,
        schema_id=id,
        mark=KEY_MARK,
    )


def _holds_key(topic: Topic[Any], schema: WrittenSchema) -> bool:
    return schema.kind is SchemaKind.AVRO and topic.key in fields_in(json.loads(schema.text))


def _type(topic: Topic[Any]) -> Any:
    return spark_schema(topic.event)[str(topic.key)].dataType


def _json_key(topic: Topic[Any], parser: Parser) -> Column:
    name, payload = str(topic.key), parser.value["payload"]
    value = F.when(payload.isNotNull(), payload[name]).otherwise(parser.value[name])
    kind = key_field(topic).kind
    key = coerced(kind, _type(topic), Seen(value, wire_type(kind), texts=True))
    return F.when(parser.closed & parser.complete, key)


def _avro_key(rows: DataFrame, topic: Topic[Any], parser: Parser) -> Column:
    value = parser.value[str(topic.key)]
    seen = Seen(value, rows.select(value).schema[0].dataType, texts=False)
    return F.when(parser.closed, coerced(key_field(topic).kind, _type(topic), seen))
