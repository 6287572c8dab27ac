"""Protobuf: parsing, and what a reader makes of a writer's bytes."""

from penstock.schemas.compatibility.protobuf.file import ProtobufSchema, parse
from penstock.schemas.compatibility.protobuf.reading import read_problems

__all__ = ["ProtobufSchema", "parse", "read_problems"]
