"""What the checker allows keeps every value: random Protobuf files, changes and messages."""

import base64

from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from protobuf_changes import descriptor, files, filled, pairs

from penstock.schemas.compatibility import SchemaKind, parse, read_problems

STEADY = settings(
    max_examples=300,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


def parsed(file):
    return parse(SchemaKind.PROTOBUF, base64.b64encode(descriptor(file).SerializeToString()).decode())


def classes(file):
    pool = DescriptorPool()
    pool.AddSerializedFile(descriptor(file).SerializeToString())
    return [GetMessageClass(pool.FindMessageTypeByName(f"r.M{position}")) for position in range(2)]


def plain(value):
    return value.encode() if isinstance(value, str) else value


def is_map(field):
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def lost(written, read):
    """The first field whose value is not what was written, if any."""
    numbers = written.DESCRIPTOR.fields_by_number
    for field in read.DESCRIPTOR.fields:
        other = numbers.get(field.number)
        if other and unset(written, other) and unset(read, field):
            continue
        if other and not kept(field, getattr(written, other.name), getattr(read, field.name)):
            return field.name
    return None


def unset(message, field):
    return field.message_type is not None and not field.is_repeated and not message.HasField(field.name)


def kept(field, one, other):
    if is_map(field):
        value = field.message_type.fields_by_name["value"]
        return {*one} == {*other} and all(kept(value, one[key], other[key]) for key in one)
    if field.is_repeated and not isinstance(one, str | bytes) and hasattr(one, "__len__"):
        return len(one) == len(other) and all(single(a, b) for a, b in zip(one, other, strict=True))
    return single(one, other)


def single(one, other):
    return lost(one, other) is None if hasattr(one, "DESCRIPTOR") else plain(one) == plain(other)


@STEADY
@given(pairs(), st.data())
def test_what_is_allowed_keeps_every_value(pair, data):
    mine, theirs = parsed(pair[1]), parsed(pair[0])
    if read_problems(mine, theirs):
        return
    for writer, reader in zip(classes(pair[0]), classes(pair[1]), strict=True):
        written = data.draw(filled(writer()))
        read = reader.FromString(written.SerializeToString())
        assert read.IsInitialized()
        assert lost(written, read) is None, lost(written, read)


@STEADY
@given(files())
def test_every_file_reads_itself(file):
    schema = parsed(file)
    assert read_problems(schema, schema) == []
