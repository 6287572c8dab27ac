"""Compiled schemas: descriptors that a process can use that has no compiler, such as one of Spark's."""

from functools import cached_property, lru_cache
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from penstock.errors import DecodeError
from penstock.schemas.compatibility.protobuf import ProtobufSchema, parse
from penstock.schemas.directory import WrittenSchema
from penstock.schemas.protobuf.wire import FIRST


class Files:
    """The serialized descriptors of a schema's file, which is the last, and of what it imports."""

    def __init__(self, *serialized: bytes) -> None:
        self._serialized = serialized

    def __reduce__(self) -> tuple[object, ...]:
        return Files, self._serialized  # a pool can't be sent to another process

    @cached_property
    def _pool(self) -> DescriptorPool:
        pool = DescriptorPool()
        for each in self._serialized:
            pool.AddSerializedFile(each)
        return pool

    def message(self, path: tuple[int, ...] = FIRST) -> type[Any]:
        """The class of a message, by the place of its type in the file."""
        return GetMessageClass(self._descriptor(path))

    def _descriptor(self, path: tuple[int, ...]) -> Descriptor:
        file = FileDescriptorProto.FromString(self._serialized[-1])
        names, types = [file.package] if file.package else [], file.message_type
        for index in path:
            declared = [each for each in types if not each.options.map_entry]
            if not 0 <= index < len(declared):
                raise DecodeError(f"its schema has no message at {list(path)}")
            names.append(declared[index].name)
            types = declared[index].nested_type
        return self._pool.FindMessageTypeByName(".".join(names))


@lru_cache(maxsize=1000)
def parsed(text: str, references: tuple[tuple[str, str], ...] = ()) -> ProtobufSchema:
    """The schema of a text; compiling one takes a process of its own."""
    return parse(text, dict(references))


def files_of(schema: WrittenSchema) -> Files:
    """The compiled files of a schema."""
    found = parsed(schema.text, schema.references)
    return Files(*(each.SerializeToString() for each in (*found.imports, found.file)))
