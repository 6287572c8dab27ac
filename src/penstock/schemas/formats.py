"""The formats whose messages name their schema, with the codec of each, and those of captured tables."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from penstock.schemas.protobuf import ProtobufCodec
from penstock.schemas.registered import AvroCodec, JsonSchemaCodec, RegisteredCodec

CODECS: Mapping[str, type[RegisteredCodec[Any]]] = MappingProxyType(
    {"avro": AvroCodec, "json-schema": JsonSchemaCodec, "protobuf": ProtobufCodec}
)
CAPTURED = frozenset({"debezium-json", "debezium-avro"})  # only read, and only by Spark
REGISTERED = frozenset({*CODECS, "debezium-avro"})
