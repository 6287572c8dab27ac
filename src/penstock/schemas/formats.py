"""The formats whose messages name their schema, and the codec of each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from penstock.schemas.protobuf import ProtobufCodec
from penstock.schemas.registered import AvroCodec, JsonSchemaCodec, RegisteredCodec

CODECS: Mapping[str, type[RegisteredCodec[Any]]] = MappingProxyType(
    {"avro": AvroCodec, "json-schema": JsonSchemaCodec, "protobuf": ProtobufCodec}
)
