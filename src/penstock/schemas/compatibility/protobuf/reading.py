"""Whether data written with one Protobuf schema keeps its values when read with another."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto

from penstock.schemas.compatibility.problem import Problem
from penstock.schemas.compatibility.protobuf.default import default_of
from penstock.schemas.compatibility.protobuf.file import ProtobufSchema
from penstock.schemas.compatibility.protobuf.oneof import oneof_problems
from penstock.schemas.compatibility.protobuf.scalar import keeps_values, same_wire, type_name

F = FieldDescriptorProto
_NESTED = (F.TYPE_MESSAGE, F.TYPE_GROUP)


def read_problems(reader: ProtobufSchema, writer: ProtobufSchema) -> list[Problem]:
    """Why the reader would lose or misread something the writer writes; empty if it would not."""
    if reader.canonical == writer.canonical and not _imports(reader):
        return []
    if "editions" in (reader.file.syntax, writer.file.syntax):
        message = "changes to a schema with an edition can't be proven; use proto2 or proto3 syntax"
        return [Problem(reader.file.message_type[0].name, "not-provable", message)]
    return [*_file_problems(reader, writer), *_Reading(reader, writer).all_messages()]


def _imports(schema: ProtobufSchema) -> bool:
    return len(schema.file.dependency) > 0


def _file_problems(reader: ProtobufSchema, writer: ProtobufSchema) -> Iterator[Problem]:
    mine, theirs = reader.file, writer.file
    first = mine.message_type[0].name
    if mine.package != theirs.package:
        message = (
            f"the writer's package is {theirs.package!r}, the reader's {mine.package!r}; keep the package"
        )
        yield Problem(first, "package-changed", message)
    if first != theirs.message_type[0].name:
        message = (
            f"the writer's first message is {theirs.message_type[0].name!r}, the reader's {first!r}; "
            "keep its name and place, and add messages behind it"
        )
        yield Problem(first, "first-message-changed", message)
    known = set(_names(reader))
    for name in _names(writer):
        if name not in known:
            message = f"the writer's message {name!r} is unknown to the reader; keep it in the reader"
            yield Problem(name, "message-removed", message)


def _names(schema: ProtobufSchema) -> list[str]:
    return [message.name for message in schema.file.message_type]


@dataclass(frozen=True)
class _Reading:
    reader: ProtobufSchema
    writer: ProtobufSchema
    # A pair of messages met again inside itself, or elsewhere, has been reported already.
    seen: set[tuple[int, int]] = field(default_factory=set)

    def all_messages(self) -> Iterator[Problem]:
        """What stands against reading each message of the file that both have."""
        for message in self.reader.file.message_type:
            mine = self.reader.messages.get(_full(self.reader, message.name))
            theirs = self.writer.messages.get(_full(self.writer, message.name))
            if mine and theirs:
                yield from self._message(mine, theirs, message.name)

    def _message(self, mine: DescriptorProto, theirs: DescriptorProto, path: str) -> Iterator[Problem]:
        if (id(mine), id(theirs)) in self.seen:
            return
        self.seen.add((id(mine), id(theirs)))
        yield from oneof_problems(mine, theirs, path)
        by_number = {other.number: other for other in theirs.field}
        by_name = {other.name: other for other in theirs.field}
        for one in mine.field:
            inside = f"{path}.{one.name}"
            yield from _renumbered(one, by_name.get(one.name), inside)
            yield from self._number(one, by_number.get(one.number), inside)

    def _number(
        self, one: FieldDescriptorProto, other: FieldDescriptorProto | None, path: str
    ) -> Iterator[Problem]:
        if one.label == F.LABEL_REQUIRED and (other is None or other.label != F.LABEL_REQUIRED):
            seen = "does not have it" if other is None else "may leave it out"
            message = f"the reader requires {one.name!r}, the writer {seen}; make it optional in the reader"
            yield Problem(path, "required-added", message)
        if other is not None:
            yield from self._field(one, other, path)

    def _field(self, one: FieldDescriptorProto, other: FieldDescriptorProto, path: str) -> Iterator[Problem]:
        mine, theirs = _form(self.reader, one), _form(self.writer, other)
        if mine != theirs:
            rule = "map-changed" if "map" in (mine, theirs) else "field-label-changed"
            message = (
                f"number {one.number} is {theirs} in the writer, {mine} in the reader; use another number"
            )
            yield Problem(path, rule, message)
        elif one.type in _NESTED or other.type in _NESTED:
            yield from self._nested(one, other, f"{path}{_SUFFIX[mine]}")
        else:
            yield from self._scalar(one, other, f"{path}{_SUFFIX[mine]}")

    def _nested(self, one: FieldDescriptorProto, other: FieldDescriptorProto, path: str) -> Iterator[Problem]:
        mine, theirs = self.reader.messages.get(one.type_name), self.writer.messages.get(other.type_name)
        if one.type == other.type and mine and theirs:
            yield from self._message(mine, theirs, path)
        elif one.type != other.type or one.type_name != other.type_name:
            yield _type_changed(one, other, path)

    def _scalar(self, one: FieldDescriptorProto, other: FieldDescriptorProto, path: str) -> Iterator[Problem]:
        if not same_wire(one, other):
            yield _type_changed(one, other, path)
        elif not keeps_values(one, other):
            yield _narrowed(one, other, path)
        else:
            yield from self._enum(one, other, path)
            yield from self._default(one, other, path)

    def _enum(self, one: FieldDescriptorProto, other: FieldDescriptorProto, path: str) -> Iterator[Problem]:
        mine = self.reader.enums.get(one.type_name) if one.type == F.TYPE_ENUM else None
        if mine is None or not mine.closed:
            return
        theirs = self.writer.enums.get(other.type_name)
        known = {value.number for value in mine.descriptor.value}
        if theirs is None or not theirs.closed:
            message = f"the writer's {type_name(other)} takes any number, the reader's enum does not; keep it"
            yield Problem(path, "enum-closed", message)
            return
        for value in theirs.descriptor.value:
            if value.number not in known:
                message = (
                    f"the writer's {value.name} = {value.number} is unknown to the reader's enum; add it"
                )
                yield Problem(path, "enum-value-missing", message)

    def _default(
        self, one: FieldDescriptorProto, other: FieldDescriptorProto, path: str
    ) -> Iterator[Problem]:
        if F.LABEL_REPEATED in (one.label, other.label) or other.label == F.LABEL_REQUIRED:
            return
        mine, theirs = default_of(one, self.reader), default_of(other, self.writer)
        if mine != theirs:
            seen = f"a field that is left out means {theirs!r} to the writer, {mine!r} to the reader"
            message = f"{seen}; keep the default"
            yield Problem(path, "default-changed", message)


_SUFFIX = {"singular": "", "repeated": "[]", "map": "{}"}


def _full(schema: ProtobufSchema, name: str) -> str:
    return f".{schema.file.package}.{name}" if schema.file.package else f".{name}"


def _form(schema: ProtobufSchema, one: FieldDescriptorProto) -> str:
    if one.label != F.LABEL_REPEATED:
        return "singular"
    message = schema.messages.get(one.type_name)
    return "map" if message and message.options.map_entry else "repeated"


def _renumbered(
    one: FieldDescriptorProto, other: FieldDescriptorProto | None, path: str
) -> Iterator[Problem]:
    if other is not None and other.number != one.number:
        message = (
            f"{one.name!r} has number {other.number} in the writer, {one.number} in the reader, which "
            "would find it empty; keep the number, or choose another name"
        )
        yield Problem(path, "field-renumbered", message)


def _type_changed(one: FieldDescriptorProto, other: FieldDescriptorProto, path: str) -> Problem:
    message = (
        f"number {one.number} is {type_name(other)} in the writer, {type_name(one)} in the reader, which "
        "can't read it; use a new number for the new type"
    )
    return Problem(path, "field-type-changed", message)


def _narrowed(one: FieldDescriptorProto, other: FieldDescriptorProto, path: str) -> Problem:
    message = (
        f"values of the writer's {type_name(other)} do not all fit the reader's {type_name(one)}; "
        "keep the type, or use a new number"
    )
    rule = "bytes-as-string" if one.type == F.TYPE_STRING else "field-range-narrowed"
    return Problem(path, rule, message)
