"""Parsers: how the values that were written with one schema are parsed by Spark.

A value is marked before it is parsed: a mark is put at its end, and has to be found there again. By itself
neither of Spark's parsers would notice that a value does not end where its event does. The mark is a hash of
the value and of a secret that this process has: nobody can write a value that holds its own mark.
"""

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import DataType, StringType, StructType

from penstock.errors import InvalidSchemaError
from penstock.log import Topic
from penstock.process.wire.coercion import wire_schema
from penstock.process.wire.json_text import json_text
from penstock.process.wire.json_types import json_type
from penstock.process.wire.protobuf import from_protobuf
from penstock.process.wire.unknown_fields import unknown_field
from penstock.schemas import AvroCodec, JsonSchemaCodec, ProtobufCodec, Upcast, WrittenSchema
from penstock.schemas.formats import CODECS
from penstock.schemas.upcasting import upcasts_from

SCHEMA_ID, MARK, TEXT = "_schema", "_mark", "_text"
_MARK_SIZE = 16  # hexadecimal digits of 64 bits
_SECRET = secrets.token_hex(16)
MARKED, _BAD = "penstock mark", "penstock bad"  # no class has a field of these names
_JSON_OPTIONS = {
    "columnNameOfCorruptRecord": _BAD,
    "allowNonNumericNumbers": "false",
    "allowSingleQuotes": "false",
}


@dataclass(frozen=True)
class Parser:
    """How values of one schema are parsed; `refusal` says why they can't be.

    `parsed` is a struct of the `value` and what shows if it is all there; it is kept under `name`, so that it
    is parsed once. `mark` is the column of what was put behind the value. `texts` says whether times and
    decimals are spelled out. `unknown` is the name of a field that should not be there, or null. One that
    `decides` gives the whole event as its `value`, or an `error`.
    """

    name: str
    parsed: Column
    texts: bool
    schema_id: int | None = None
    version: int | None = None
    upcasts: tuple[Upcast, ...] = ()
    refusal: str | None = None
    unknown: Column | None = None
    decides: bool = False
    mark: str = MARK

    @property
    def verdict(self) -> Column:
        """What is wrong with a value, or null, if that is known without looking at its fields."""
        return F.col(self.name)["error"] if self.decides else F.lit(self.refusal)

    @property
    def value(self) -> Column:
        parsed = F.col(self.name)
        return parsed if self.texts else parsed["value"]

    @property
    def closed(self) -> Column:
        """Whether the value ends where its event does."""
        parsed = F.col(self.name)
        if not self.texts:
            return parsed["tail"].eqNullSafe(F.col(self.mark).cast("binary"))
        return parsed[MARKED].eqNullSafe(F.col(self.mark))

    @property
    def complete(self) -> Column:
        """Whether nothing in the value was left out because it is of another type."""
        return F.col(self.name)[_BAD].isNull() if self.texts else F.lit(True)


def parsers(topic: Topic[Any], schemas: Mapping[int, WrittenSchema]) -> list[Parser]:
    """Return one parser for plain JSON, else one for each schema that the topic's messages may have."""
    if topic.format == "json":
        parsed = parse_json(F.col(TEXT), wire_schema(topic.event))
        return [Parser("_parsed", parsed, texts=True, unknown=_unknown(topic, F.col("value")))]
    return [_registered(topic, id, schema) for id, schema in schemas.items()]


def schema_id(name: str = "value") -> Column:
    """Return the number of the schema of a value or key, or null where it does not begin with one."""
    value = F.col(name)
    number = F.conv(F.hex(F.substring(value, 2, 4)), 16, 10).cast("long")
    return F.when((F.length(value) >= 5) & (F.substring(value, 1, 1) == F.lit(b"\0")), number)


def schema_ids(rows: DataFrame) -> DataFrame:
    """Return the numbers of schemas, as `id`, that rows of Kafka's name."""
    return rows.select(schema_id().alias("id")).where("id is not null").distinct()


def mark(topic: Topic[Any], name: str = "value") -> Column:
    """Return what is put behind a value or a key; the hash is one of the fast ones, hence the secret."""
    hashed = F.hex(F.xxhash64(F.lit(_SECRET), body(name) if topic.is_registered else F.col(name)))
    return hashed if _is_json(topic) else F.lpad(hashed, _MARK_SIZE, "0")


def body(name: str = "value") -> Column:
    """Return what comes behind the number of a schema."""
    return F.expr(f"substring({name}, 6)")


def texts(topic: Topic[Any]) -> list[Column]:
    """Return what JSON is parsed from, to be a column of its own: of a parser Spark compiles no argument."""
    if not _is_json(topic):
        return []
    value = body() if topic.is_registered else F.col("value")
    return [json_text(value, F.col(MARK), MARKED).alias(TEXT)]


def parse_json(text: Column, wanted: DataType) -> Column:
    """Parse a text that has its mark; asked for twice, it stays the column that it is."""
    fields = wanted.fields if isinstance(wanted, StructType) else []
    frame = StructType([*fields]).add(MARKED, StringType()).add(_BAD, StringType())
    return F.when(text.isNotNull(), F.from_json(text, frame, _JSON_OPTIONS))


def _is_json(topic: Topic[Any]) -> bool:
    return topic.format in ("json", "json-schema", "debezium-json")


def parse_avro(body: Column, writer: str, reader: str, marked_by: str = MARK) -> Column:
    """Parse what was written with one schema as another one has it, and the mark behind it."""
    options = {"mode": "PERMISSIVE", "avroSchema": _avro_frame(reader)}
    return from_avro(F.concat(body, F.col(marked_by).cast("binary")), _avro_frame(writer), options)


def _unknown(topic: Topic[Any], text: Column) -> Column | None:
    return unknown_field(topic.event, text.cast("string")) if topic.unknown == "refuse" else None


def _registered(topic: Topic[Any], id: int, schema: WrittenSchema) -> Parser:
    codec = CODECS[topic.format]
    name, texts = f"_parsed_{id}", codec is JsonSchemaCodec
    if schema.kind is not codec.kind:
        refusal = f"the message's schema is {schema.kind}, the topic's {codec.kind}"
        return Parser(name, F.lit(None), texts, id, refusal=refusal)
    if codec is ProtobufCodec:
        return _protobuf(topic, id, schema)
    own = codec.schema_text(topic.event)
    is_own = json.loads(schema.text) == json.loads(own)
    upcasts = () if is_own else upcasts_from(schema.version, topic.upcasts)
    if codec is AvroCodec:
        parsed, unknown = parse_avro(body(), schema.text, schema.text if upcasts else own), None
    else:
        wanted = json_type(json.loads(schema.text)) if upcasts else wire_schema(topic.event)
        parsed, unknown = parse_json(F.col(TEXT), wanted), _unknown(topic, body()) if is_own else None
    parsed = F.when(F.col(SCHEMA_ID) == id, parsed)
    return Parser(name, parsed, texts, id, schema.version, upcasts, unknown=unknown)


def _protobuf(topic: Topic[Any], id: int, schema: WrittenSchema) -> Parser:
    """Python gets the bodies of the other schemas as null, because it would be given all rows anyway."""
    name, own = f"_parsed_{id}", F.when(F.col(SCHEMA_ID) == id, body())
    try:
        parsed = from_protobuf(own, topic, schema)
    except InvalidSchemaError as error:
        return Parser(name, F.lit(None), texts=False, schema_id=id, refusal=error.message)
    return Parser(name, parsed, texts=False, schema_id=id, version=schema.version, decides=True)


def _avro_frame(schema: str) -> str:
    tail = {"type": "fixed", "name": "PenstockTail", "size": _MARK_SIZE}
    fields = [{"name": "value", "type": json.loads(schema)}, {"name": "tail", "type": tail}]
    return json.dumps({"type": "record", "name": "PenstockFrame", "fields": fields})
