"""Which scalar types read each other on the wire, and whether every value survives it."""

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

F = FieldDescriptorProto

_GROUPS = (
    {F.TYPE_INT32, F.TYPE_UINT32, F.TYPE_INT64, F.TYPE_UINT64, F.TYPE_BOOL, F.TYPE_ENUM},
    {F.TYPE_SINT32, F.TYPE_SINT64},
    {F.TYPE_STRING, F.TYPE_BYTES},
    {F.TYPE_FIXED32, F.TYPE_SFIXED32},
    {F.TYPE_FIXED64, F.TYPE_SFIXED64},
)
_SIGNED_32 = range(-(2**31), 2**31)
_SIGNED_64 = range(-(2**63), 2**63)
_RANGES = {
    F.TYPE_BOOL: range(2),
    F.TYPE_ENUM: _SIGNED_32,
    F.TYPE_INT32: _SIGNED_32,
    F.TYPE_SINT32: _SIGNED_32,
    F.TYPE_SFIXED32: _SIGNED_32,
    F.TYPE_INT64: _SIGNED_64,
    F.TYPE_SINT64: _SIGNED_64,
    F.TYPE_SFIXED64: _SIGNED_64,
    F.TYPE_UINT32: range(2**32),
    F.TYPE_FIXED32: range(2**32),
    F.TYPE_UINT64: range(2**64),
    F.TYPE_FIXED64: range(2**64),
}


def type_name(field: FieldDescriptorProto) -> str:
    """A field's type as it is written in .proto."""
    return field.type_name.lstrip(".") or F.Type.Name(field.type).removeprefix("TYPE_").lower()


def same_wire(reader: FieldDescriptorProto, writer: FieldDescriptorProto) -> bool:
    """Whether the two types have one form on the wire."""
    return reader.type == writer.type or any(
        reader.type in group and writer.type in group for group in _GROUPS
    )


def keeps_values(reader: FieldDescriptorProto, writer: FieldDescriptorProto) -> bool:
    """Whether every value that the writer's type has is one of the reader's, on the same wire form."""
    if reader.type == writer.type:
        return True
    if reader.type not in _RANGES:
        return reader.type == F.TYPE_BYTES
    mine, theirs = _RANGES[reader.type], _RANGES[writer.type]
    return mine.start <= theirs.start and theirs.stop <= mine.stop
