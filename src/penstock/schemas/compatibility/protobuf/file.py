"""A Protobuf schema: its file's descriptor, and every type that can be reached from it."""

import base64
import binascii
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from penstock.errors import InvalidSchemaError
from penstock.schemas.compatibility.protobuf.canonical import canonical
from penstock.schemas.compatibility.protobuf.compiler import MAIN, check_names, compile_proto
from penstock.schemas.compatibility.protobuf.extra import require_protobuf
from penstock.schemas.compatibility.protobuf.wellknown import ASSUMED, well_known

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


@dataclass(frozen=True)
class Enumeration:
    """An enum type; one of the second syntax is closed: unknown numbers are not its values."""

    descriptor: EnumDescriptorProto
    closed: bool


@dataclass(frozen=True, eq=False)
class ProtobufSchema:
    """A file and the types of it and its imports, by full name with a leading dot.

    `imports` are the files that it needs, each behind those that it needs itself.
    """

    file: FileDescriptorProto
    imports: tuple[FileDescriptorProto, ...]
    messages: Mapping[str, DescriptorProto]
    enums: Mapping[str, Enumeration]
    canonical: str


def parse(text: str, references: Mapping[str, str]) -> ProtobufSchema:
    """The schema of a .proto text, or of a base64 file descriptor as Confluent's Python client sends."""
    require_protobuf()
    check_names(references)
    compiled = {name: descriptor(other, name) for name, other in references.items() if _is_base64(other)}
    sources = {name: other for name, other in references.items() if name not in compiled}
    if _is_base64(text):
        file = descriptor(text, "")
        imports = {**_compiled_sources(sources, compiled), **compiled}
    else:
        *rest, file = compile_proto(text, sources, compiled)
        imports = {other.name: other for other in rest}
    return _schema(file, {**well_known(), **imports})


def _compiled_sources(
    sources: Mapping[str, str], compiled: Mapping[str, FileDescriptorProto]
) -> dict[str, FileDescriptorProto]:
    if not sources:
        return {}
    text = "".join(f'import "{name}";\n' for name in sources)
    *files, _ = compile_proto(f'syntax = "proto3";\n{text}', sources, compiled)
    return {file.name: file for file in files}


def _is_base64(text: str) -> bool:
    return bool(_BASE64.fullmatch("".join(text.split())))


def descriptor(text: str, name: str) -> FileDescriptorProto:
    """The file descriptor in a base64 text; a reference takes the name it is imported by."""
    try:
        file = FileDescriptorProto.FromString(base64.b64decode("".join(text.split()), validate=True))
    except (binascii.Error, DecodeError) as error:
        hint = "give .proto text, or a serialized FileDescriptorProto in base64"
        raise InvalidSchemaError(f"not a file descriptor: {error}", where=name, hint=hint) from None
    file.name = name or file.name or MAIN
    return file


def _schema(file: FileDescriptorProto, imports: Mapping[str, FileDescriptorProto]) -> ProtobufSchema:
    needed, missing = _needed(file, imports)
    _check(file, needed, missing)
    ordered = _in_order(file, needed)
    files = [*ordered, file]
    messages = {name: found for one in files for name, found in _messages(one)}
    enums = {name: found for one in files for name, found in _enums(one)}
    return ProtobufSchema(file, ordered, MappingProxyType(messages), MappingProxyType(enums), canonical(file))


def _check(file: FileDescriptorProto, imports: Mapping[str, FileDescriptorProto], missing: set[str]) -> None:
    if not file.message_type:
        raise InvalidSchemaError("the file has no message", hint="define at least one message")
    if any(not name.startswith(ASSUMED) for name in missing):
        hint = "register them first and give them as references"
        raise InvalidSchemaError(f"imports {', '.join(sorted(missing))} are unknown", hint=hint)
    if not missing:
        _build([*_in_order(file, imports), file])


def _needed(
    file: FileDescriptorProto, imports: Mapping[str, FileDescriptorProto]
) -> tuple[dict[str, FileDescriptorProto], set[str]]:
    needed: dict[str, FileDescriptorProto] = {}
    missing: set[str] = set()
    pending = list(file.dependency)
    while pending:
        name = pending.pop()
        if name not in imports:
            missing.add(name)
        elif name not in needed:
            needed[name] = imports[name]
            pending.extend(imports[name].dependency)
    return needed, missing


def _in_order(
    file: FileDescriptorProto, imports: Mapping[str, FileDescriptorProto]
) -> tuple[FileDescriptorProto, ...]:
    """What a file imports, each behind its own imports."""
    ordered: list[FileDescriptorProto] = []
    met: set[str] = set()

    def visit(one: FileDescriptorProto) -> None:
        for name in one.dependency:
            if name in imports and name not in met:
                met.add(name)
                visit(imports[name])
                ordered.append(imports[name])

    visit(file)
    return tuple(ordered)


def _build(files: Iterable[FileDescriptorProto]) -> None:
    pool = DescriptorPool()
    try:
        for file in files:
            pool.AddSerializedFile(file.SerializeToString())
    except (TypeError, ValueError) as error:
        hint = "give a descriptor that protoc made"
        raise InvalidSchemaError(f"the file descriptor is inconsistent: {error}", hint=hint) from None


def _enums(file: FileDescriptorProto) -> Iterator[tuple[str, Enumeration]]:
    prefix = f".{file.package}" if file.package else ""
    scopes = [(prefix, file.enum_type), *((name, message.enum_type) for name, message in _messages(file))]
    for scope, enums in scopes:
        for enum in enums:
            yield f"{scope}.{enum.name}", Enumeration(enum, file.syntax != "proto3")


def _messages(file: FileDescriptorProto) -> Iterator[tuple[str, DescriptorProto]]:
    prefix = f".{file.package}" if file.package else ""
    pending = deque((f"{prefix}.{message.name}", message) for message in file.message_type)
    while pending:
        name, message = pending.popleft()
        yield name, message
        pending.extend((f"{name}.{inner.name}", inner) for inner in message.nested_type)
