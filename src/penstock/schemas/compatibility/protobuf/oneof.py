"""Fields that move into a oneof, where only one of them survives."""

from collections.abc import Iterator
from itertools import combinations

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from penstock.schemas.compatibility.problem import Problem


def oneof_problems(reader: DescriptorProto, writer: DescriptorProto, path: str) -> Iterator[Problem]:
    """The writer's fields that can be set together but not read together."""
    written = {field.number: field for field in writer.field}
    exclusive = [field for field in reader.field if oneof_of(field, reader) is not None]
    for one, other in combinations(exclusive, 2):
        name = oneof_of(one, reader)
        if name != oneof_of(other, reader):
            continue
        first, second = written.get(one.number), written.get(other.number)
        if first and second and not _exclusive(first, second, writer):
            message = (
                f"the writer can set {first.name!r} and {second.name!r} together, the reader's oneof "
                f"{name!r} keeps one of them; leave them outside of the oneof"
            )
            yield Problem(f"{path}.{other.name}", "oneof-field-moved", message)


def oneof_of(field: FieldDescriptorProto, message: DescriptorProto) -> str | None:
    """The oneof that a field is in; the one behind a proto3 `optional` does not count."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return None
    return message.oneof_decl[field.oneof_index].name


def _exclusive(one: FieldDescriptorProto, other: FieldDescriptorProto, message: DescriptorProto) -> bool:
    name = oneof_of(one, message)
    return name is not None and name == oneof_of(other, message)
