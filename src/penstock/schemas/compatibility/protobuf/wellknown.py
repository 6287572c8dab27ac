"""The files that every Protobuf schema may import without bringing them along."""

from collections.abc import Mapping
from functools import cache

from google.protobuf import (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FileDescriptorProto

_MODULES = (
    any_pb2,
    api_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    source_context_pb2,
    struct_pb2,
    timestamp_pb2,
    type_pb2,
    wrappers_pb2,
)
# Confluent's clients don't send these as references, and not all of them can be found here.
ASSUMED = ("google/protobuf/", "google/type/", "confluent/")


@cache
def well_known() -> Mapping[str, FileDescriptorProto]:
    """The descriptors of Google's well-known files, by name."""
    return {module.DESCRIPTOR.name: _descriptor(module.DESCRIPTOR.serialized_pb) for module in _MODULES}


def _descriptor(serialized: bytes) -> FileDescriptorProto:
    return FileDescriptorProto.FromString(serialized)
