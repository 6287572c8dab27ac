"""Readings: how the values that were written with one schema are parsed by Spark.

A value is framed before it is parsed: something is put behind it, and has to be found there again. By itself
neither of Spark's parsers would notice that a value does not end where its event does.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
)

from penstock.log import Topic
from penstock.process.fitting import wire_schema
from penstock.schemas import AvroCodec, JsonSchemaCodec, Upcast, WrittenSchema
from penstock.schemas.upcasting import chain

SCHEMA_ID = "_schema"
_AVRO_TAIL = b"tail"
_JSON_OPTIONS = {
    "columnNameOfCorruptRecord": "bad",
    "allowNonNumericNumbers": "false",
    "allowSingleQuotes": "false",
}
_JSON_SCALARS: dict[str, DataType] = {
    "integer": LongType(),
    "number": DoubleType(),
    "boolean": BooleanType(),
}


@dataclass(frozen=True)
class Reading:
    """How values of one schema are parsed; `refusal` says why they can't be.

    `parsed` is a struct of the `value` and what tells if it is `whole`; it is kept under `name`, so that it
    is parsed once. `texts` says whether times and decimals are spelled out.
    """

    name: str
    parsed: Column
    texts: bool
    schema_id: int | None = None
    version: int | None = None
    upcasts: tuple[Upcast, ...] = ()
    refusal: str | None = None

    @property
    def value(self) -> Column:
        return F.col(self.name)["value"]

    @property
    def whole(self) -> Column:
        """Whether the value ends where its event does, and nothing in it was left out."""
        parsed = F.col(self.name)
        if self.texts:
            return parsed["tail"].isNotNull() & parsed["bad"].isNull()
        return parsed["tail"].eqNullSafe(F.lit(_AVRO_TAIL))


def readings(topic: Topic[Any], schemas: Mapping[int, WrittenSchema]) -> list[Reading]:
    """Return one reading for plain JSON, else one for each schema that the topic's messages may have."""
    if topic.format == "json":
        return [Reading("_parsed", _json(F.col("value"), wire_schema(topic.event)), texts=True)]
    return [_registered(topic, id, schema) for id, schema in schemas.items()]


def schema_id() -> Column:
    """Return the number of a value's schema, or null where the value does not begin with one."""
    value = F.col("value")
    number = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("long")
    return F.when((F.length(value) >= 5) & (F.substring(value, 1, 1) == F.lit(b"\0")), number)


def _registered(topic: Topic[Any], id: int, schema: WrittenSchema) -> Reading:
    codec = AvroCodec if topic.format == "avro" else JsonSchemaCodec
    name, texts = f"_parsed_{id}", codec is JsonSchemaCodec
    if schema.kind is not codec.kind:
        refusal = f"the message's schema is {schema.kind}, the topic's {codec.kind}"
        return Reading(name, F.lit(None), texts, id, refusal=refusal)
    own = codec.schema_text(topic.event)
    is_own = json.loads(schema.text) == json.loads(own)
    upcasts = () if is_own else chain(topic.upcasts).get(schema.version or 0, ())
    body = F.expr("substring(value, 6)")
    if codec is AvroCodec:
        parsed = _avro(body, schema.text, schema.text if upcasts else own)
    else:
        wanted = json_type(json.loads(schema.text)) if upcasts else wire_schema(topic.event)
        parsed = _json(body, wanted)
    return Reading(name, F.when(F.col(SCHEMA_ID) == id, parsed), texts, id, schema.version, upcasts)


def _json(value: Column, wanted: DataType) -> Column:
    text = value.cast("string")
    framed = F.concat(F.lit('{"value":'), text, F.lit(',"tail":true}'))
    frame = StructType().add("value", wanted).add("tail", BooleanType()).add("bad", StringType())
    return F.when(F.is_valid_utf8(text), F.from_json(framed, frame, _JSON_OPTIONS))


def _avro(body: Column, writer: str, reader: str) -> Column:
    options = {"mode": "PERMISSIVE", "avroSchema": _avro_frame(reader)}
    return from_avro(F.concat(body, F.lit(_AVRO_TAIL)), _avro_frame(writer), options)


def _avro_frame(schema: str) -> str:
    tail = {"type": "fixed", "name": "PenstockTail", "size": len(_AVRO_TAIL)}
    fields = [{"name": "value", "type": json.loads(schema)}, {"name": "tail", "type": tail}]
    return json.dumps({"type": "record", "name": "PenstockFrame", "fields": fields})


def json_type(schema: Any) -> DataType:
    """Return the type as which values of a JSON schema are read; what it does not say plainly is text."""
    return _json_type(schema, schema.get("$defs", schema.get("definitions", {})))


def _json_type(schema: Any, named: Mapping[str, Any]) -> DataType:
    match schema:
        case {"$ref": str(reference)}:
            return _json_type(named.get(reference.rpartition("/")[2], {}), named)
        case {"anyOf": [*branches]} | {"oneOf": [*branches]}:
            inner = [each for each in branches if each != {"type": "null"}]
            return _json_type(inner[0], named) if len(inner) == 1 else StringType()
        case {"type": [*types]}:
            inner = [each for each in types if each != "null"]
            return _json_type({**schema, "type": inner[0]}, named) if len(inner) == 1 else StringType()
        case {"type": "array", "items": dict(items)}:
            return ArrayType(_json_type(items, named))
        case {"type": "object", "properties": dict(properties)}:
            made = StructType()
            for name, each in properties.items():
                made.add(name, _json_type(each, named))
            return made
        case {"type": "object", "additionalProperties": dict(values)}:
            return MapType(StringType(), _json_type(values, named))
        case {"type": str(name)}:
            return _JSON_SCALARS.get(name, StringType())
    return StringType()
