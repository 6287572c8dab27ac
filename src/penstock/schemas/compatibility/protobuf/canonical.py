"""One way to write a file descriptor, so that equal texts mean equal schemas."""

import base64

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto


def canonical(file: FileDescriptorProto) -> str:
    """The descriptor in base64, without its name, its comments and what follows from the rest."""
    plain = FileDescriptorProto()
    plain.CopyFrom(file)
    for attribute in ("name", "source_code_info"):
        plain.ClearField(attribute)
    if plain.syntax == "proto2":
        plain.ClearField("syntax")
    for field in plain.extension:
        _strip(field)
    for message in plain.message_type:
        _strip_fields(message)
    return base64.b64encode(plain.SerializeToString(deterministic=True)).decode("ascii")


def _strip_fields(message: DescriptorProto) -> None:
    for field in (*message.field, *message.extension):
        _strip(field)
    for inner in message.nested_type:
        _strip_fields(inner)


def _strip(field: FieldDescriptorProto) -> None:
    # Compilers fill the usual JSON name in or leave it out.
    if field.json_name == json_name(field.name):
        field.ClearField("json_name")


def json_name(name: str) -> str:
    """A field's usual name in JSON: every letter behind an underscore raised."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)
