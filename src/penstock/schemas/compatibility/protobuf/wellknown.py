"""The files that every Protobuf schema may import without bringing them along."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from google.protobuf.descriptor_pb2 import FileDescriptorProto

_NAMES = (
    "any", "api", "descriptor", "duration", "empty", "field_mask", "source_context", "struct", "timestamp",
    "type", "wrappers",
)  # fmt: skip
# Confluent's clients don't send these as references, and not all of them can be found here.
ASSUMED = ("google/protobuf/", "google/type/", "confluent/")


@cache
def well_known() -> Mapping[str, FileDescriptorProto]:
    """The descriptors of Google's well-known files, by name."""
    files = (import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR for name in _NAMES)
    return {file.name: FileDescriptorProto.FromString(file.serialized_pb) for file in files}
