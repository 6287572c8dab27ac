"""The kinds of schema, by the names of Confluent's registry."""

from enum import StrEnum


class SchemaKind(StrEnum):
    """What language a schema is written in."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"
