"""Protobuf as a topic's format: the schema of a class, its codec, and messages of other producers."""

from penstock.schemas.protobuf.codec import ProtobufCodec
from penstock.schemas.protobuf.text import proto_text

__all__ = ["ProtobufCodec", "proto_text"]
