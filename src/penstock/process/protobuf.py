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

from penstock.log import Topic
from penstock.schemas import NumberedSchema, SchemaKind, WrittenSchema, spark_schema
from penstock.schemas.codec import unreadable
from penstock.schemas.protobuf.codec import is_schema_of
from penstock.schemas.protobuf.decoder import Decoder
from penstock.schemas.protobuf.encoder import Encoder
from penstock.schemas.protobuf.files import files_of
from penstock.schemas.protobuf.writing import NATIVE
from penstock.schemas.shape import shape_of
from penstock.schemas.upcasting import upcasts_from

Row = dict[str, Any] | None


def from_protobuf(body: Column, topic: Topic[Any], schema: WrittenSchema) -> Column:
    """Return the event in each body as `value`, or the `error` of one that can't be decoded."""
    cls, type = topic.event, StructType().add("value", spark_schema(topic.event)).add("error", StringType())
    zone = SparkSession.active().conf.get("spark.sql.session.timeZone")
    arrow, row = to_arrow_type(type, timezone=zone), _row_reader(cls, _decoder(topic, schema))

    def decode(bodies: pa.Array) -> pa.Array:
        return pa.array([row(each) for each in bodies.to_pylist()], arrow)

    made: Column = arrow_udf(decode, type)(body)  # type: ignore[call-overload]
    return made


def _decoder(topic: Topic[Any], schema: WrittenSchema) -> Decoder:
    if is_schema_of(topic.event, schema):
        return Decoder(topic.event, files_of(schema), unknown=topic.unknown)
    return Decoder(topic.event, files_of(schema), upcasts_from(schema.version, topic.upcasts))


def to_protobuf(event: Column, cls: type, schema: NumberedSchema) -> Column:
    """Return the body of each event that is not null."""
    encoder = Encoder(cls, files_of(WrittenSchema(SchemaKind.PROTOBUF, schema.text, None)))

    def encode(events: pa.Array) -> pa.Array:
        bodies = [None if each is None else encoder.body(each) for each in events.to_pylist()]
        return pa.array(bodies, pa.binary())

    made: Column = arrow_udf(encode, "binary")(event)  # type: ignore[call-overload]
    return made


def _row_reader(cls: type, decoder: Decoder) -> Callable[[bytes | None], Row]:
    def row(body: bytes | None) -> Row:
        if body is None:
            return None
        try:
            event = shape_of(cls).revive(decoder(body))
            return {"value": msgspec.to_builtins(event, builtin_types=NATIVE), "error": None}
        except Exception as error:
            return {"value": None, "error": unreadable(cls.__name__, body, error).message}

    return row
