"""How events take shape: Avro, JSON and Spark schemas of event classes, and their codecs."""

from penstock.schemas.avro import avro_schema
from penstock.schemas.codecs import AvroCodec, Codec, Format, JsonCodec, codec_for
from penstock.schemas.spark import spark_schema

__all__ = ["AvroCodec", "Codec", "Format", "JsonCodec", "avro_schema", "codec_for", "spark_schema"]
