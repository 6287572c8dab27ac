"""How events take shape, and how the shape may change: schemas, codecs, compatibility and upcasting."""

from penstock.schemas.avro import avro_schema
from penstock.schemas.codec import Codec, Decoded, Format, JsonCodec
from penstock.schemas.compatibility import Mode, Problem, SchemaKind
from penstock.schemas.directory import NumberedSchema, SchemaDirectory, WrittenSchema
from penstock.schemas.protobuf import ProtobufCodec
from penstock.schemas.registered import AvroCodec, JsonSchemaCodec
from penstock.schemas.spark import spark_schema
from penstock.schemas.upcasting import Upcast, cast, default, merge, python, rename, split, upcast

__all__ = [
    "AvroCodec",
    "Codec",
    "Decoded",
    "Format",
    "JsonCodec",
    "JsonSchemaCodec",
    "Mode",
    "NumberedSchema",
    "Problem",
    "ProtobufCodec",
    "SchemaDirectory",
    "SchemaKind",
    "Upcast",
    "WrittenSchema",
    "avro_schema",
    "cast",
    "default",
    "merge",
    "python",
    "rename",
    "spark_schema",
    "split",
    "upcast",
]
