"""What a field means when it was left out."""

from google.protobuf.descriptor_pb2 import FieldDescriptorProto

from penstock.schemas.compatibility.protobuf.file import ProtobufSchema

F = FieldDescriptorProto
_TEXTS = (F.TYPE_STRING, F.TYPE_BYTES)


def default_of(field: FieldDescriptorProto, schema: ProtobufSchema) -> int | float | str:
    """The value of a field that is not there, comparable between types of one wire form."""
    stated = field.default_value
    if field.type == F.TYPE_ENUM:
        return _enum_default(field, schema)
    if field.type in _TEXTS:
        return stated
    if field.type == F.TYPE_BOOL:
        return int(stated == "true")
    if field.type in (F.TYPE_FLOAT, F.TYPE_DOUBLE):
        # As a text, because nan is not equal to itself.
        return repr(float(stated or 0))
    return int(stated or 0)


def _enum_default(field: FieldDescriptorProto, schema: ProtobufSchema) -> int | str:
    found = schema.enums.get(field.type_name)
    if found is None:
        return field.default_value
    numbers = {value.name: value.number for value in found.descriptor.value}
    return numbers.get(field.default_value, found.descriptor.value[0].number)
