"""Protobuf in Spark: Python decodes and encodes it, a column at a time.

Spark's own functions for it are in a jar that is not published for the versions of Spark used here.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructType

from penstock.events import fields_of
from penstock.log import Topic
from penstock.schemas import NumberedSchema, SchemaKind, WrittenSchema, spark_schema
from penstock.schemas.codec import unreadable
from penstock.schemas.protobuf.codec import is_schema_of
from penstock.schemas.protobuf.decoder import Decoder
from penstock.schemas.protobuf.encoder import Encoder
from penstock.schemas.protobuf.files import files_of
from penstock.schemas.protobuf.writing import NATIVE
from penstock.schemas.shape import shape_of
from penstock.schemas.upcasting import Values, upcasts_from

_PARTS = ("value", "error")
Read = tuple[Values | None, str | None]  # the values of an event, or what is wrong with it


def from_protobuf(body: Column, topic: Topic[Any], schema: WrittenSchema) -> Column:
    """Return the event in each body as `value`, or the `error` of one that can't be decoded."""
    event = spark_schema(topic.event).toNullable()  # as other formats are read
    read = _reader(topic.event, _decoder(topic, schema))
    zone = SparkSession.active().conf.get("spark.sql.session.timeZone")
    type = to_arrow_type(event, timezone=zone)

    def decode(bodies: pa.Array) -> pa.Array:
        found = [read(each) for each in bodies.to_pylist()]
        values, errors = [each for each, _ in found], [each for _, each in found]
        return pa.StructArray.from_arrays([_columns(values, type), pa.array(errors, pa.string())], _PARTS)

    result = StructType().add("value", event).add("error", StringType())
    made: Column = arrow_udf(decode, result)(body)  # type: ignore[call-overload]
    return made


def to_protobuf(event: Column, cls: type, schema: NumberedSchema) -> Column:
    """Return the body of each event that is not null."""
    encoder = Encoder(cls, files_of(WrittenSchema(SchemaKind.PROTOBUF, schema.text, None)))
    names = [field.name for field in fields_of(cls)]

    def encode(events: pa.Array) -> pa.Array:
        rows = zip(*(column.to_pylist() for column in events.flatten()), strict=True)
        there = events.is_valid().to_pylist()
        bodies = [
            encoder.body(dict(zip(names, row, strict=True))) if good else None
            for good, row in zip(there, rows, strict=True)
        ]
        return pa.array(bodies, pa.binary())

    made: Column = arrow_udf(encode, "binary")(event)  # type: ignore[call-overload]
    return made


def _decoder(topic: Topic[Any], schema: WrittenSchema) -> Decoder:
    if is_schema_of(topic.event, schema):
        return Decoder(topic.event, files_of(schema), unknown=topic.unknown)
    return Decoder(topic.event, files_of(schema), upcasts_from(schema.version, topic.upcasts))


def _reader(cls: type, decoder: Decoder) -> Callable[[bytes | None], Read]:
    def read(body: bytes | None) -> Read:
        if body is None:
            return None, None
        try:
            event = shape_of(cls).revive(decoder(body))
            return msgspec.to_builtins(event, builtin_types=NATIVE), None
        except Exception as error:
            return None, unreadable(cls.__name__, body, error).message

    return read


def _columns(rows: list[Values | None], type: pa.StructType) -> pa.StructArray:
    """Rows as columns: six times as fast as Arrow is with rows."""
    columns = [pa.array([row and row[field.name] for row in rows], field.type) for field in type]
    return pa.StructArray.from_arrays(columns, fields=[*type], mask=pa.array([row is None for row in rows]))
