"""Protobuf as a topic's format: every kind survives, and messages of other producers are read."""

import pickle
from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Annotated

import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.event_samples import Channel, Line, Order, lines, random_order, text
from tests.schema_directory import MemoryDirectory

from penstock.errors import DecodeError, InvalidSchemaError, TopicError
from penstock.events import Event, Precision
from penstock.log import Topic
from penstock.schemas import ProtobufCodec, SchemaKind, default, rename, split, upcast
from penstock.schemas.compatibility import parse
from penstock.schemas.compatibility.protobuf import compiler, extra
from penstock.schemas.protobuf.decoder import Decoder
from penstock.schemas.protobuf.files import files_of, parsed

NOW = datetime(2026, 1, 1, 12, 30, 0, 123456, tzinfo=UTC)
SUBJECT = "things-value"


@pytest.fixture(autouse=True, scope="module")
def _protoc():
    """Compiling in a process of its own would take most of the time."""
    compiler.run_protoc(compiler.in_this_process)
    yield
    compiler.run_protoc(compiler.in_child)


class Case(Enum):
    """Two of its values would have one symbol."""

    LOWER = "a"
    UPPER = "A"


class Sign(Enum):
    UNSPECIFIED = "unspecified"
    PLUS = "+"


@dataclass(frozen=True)
class Odd(Event):
    """Nulls, lists and maps in all the places where Protobuf has none."""

    maybe_list: list[int] | None
    maybe_map: dict[str, str] | None
    lists: list[list[str]]
    nulls: list[Annotated[Decimal, Precision(30, 8)] | None]
    maps: list[dict[str, float | None]]
    map_of_lists: dict[str, list[Line]]
    deep: list[list[list[int] | None] | None] | None
    enums: dict[str, Channel | None]
    case: Case
    sign: Sign
    maybe_sign: Sign | None
    at: datetime
    text: str | None = "usual"
    empty: str = "usual"


whole = st.integers(-(2**63), 2**63 - 1)
fine = st.decimals(-(10**21), 10**21, places=8)
odd_events = st.builds(
    Odd,
    id=text,
    maybe_list=st.none() | st.lists(whole, max_size=2),
    maybe_map=st.none() | st.dictionaries(text, text, max_size=2),
    lists=st.lists(st.lists(text, max_size=2), max_size=2),
    nulls=st.lists(st.none() | fine, max_size=3),
    maps=st.lists(st.dictionaries(text, st.none() | st.floats(-1e9, 1e9), max_size=2), max_size=2),
    map_of_lists=st.dictionaries(text, st.lists(lines, max_size=2), max_size=2),
    deep=st.none() | st.lists(st.none() | st.lists(st.none() | st.lists(whole, max_size=2), max_size=2)),
    enums=st.dictionaries(text, st.none() | st.sampled_from(Channel), max_size=2),
    case=st.sampled_from(Case),
    sign=st.sampled_from(Sign),
    maybe_sign=st.none() | st.sampled_from(Sign),
    at=st.just(NOW),
    text=st.none() | text,
    empty=text,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(event=odd_events)
def test_what_protobuf_has_no_place_for_survives_too(event):
    codec = ProtobufCodec(Odd, SUBJECT, MemoryDirectory())
    assert codec.decode(codec.encode(event)) == event


def test_a_message_names_its_schema_and_that_it_is_the_first_of_the_file():
    message = ProtobufCodec(Order, SUBJECT, MemoryDirectory()).encode(random_order(Random(1)))
    assert message[:6] == b"\0\0\0\0\1\0"


# Versions


def versions(*fields, **options):
    return make_dataclass("Thing", [("at", datetime), *fields], bases=(Event,), frozen=True, **options)


def test_older_and_newer_versions_read_each_other():
    directory = MemoryDirectory()
    old = versions(("name", str), ("size", int))
    new = versions(("color", str | None, None), ("name", str, "nobody"))
    writers = {cls: ProtobufCodec(cls, SUBJECT, directory) for cls in (old, new)}
    before = writers[old].encode(old(NOW, "ada", 3, id="t1"))
    after = writers[new].encode(new(NOW, "red", "eve", id="t2"))
    assert writers[new].decode(before) == new(NOW, None, "ada", id="t1")
    with pytest.raises(DecodeError, match="size"):
        writers[old].decode(after)


def test_upcasts_bring_older_versions_to_the_class():
    directory = MemoryDirectory()
    old, new = versions(("name", str)), versions(("first", str), ("last", str | None), ("country", str))
    message = ProtobufCodec(old, SUBJECT, directory).encode(old(NOW, "Ada Lovelace", id="t1"))
    steps = (upcast(1, split("name", into=("first", "last")), default("country", "?")),)
    codec = ProtobufCodec(new, SUBJECT, directory, steps)
    assert codec.decode(message) == new(NOW, "Ada", "Lovelace", "?", id="t1")
    again = new(NOW, "Ada", None, "UK", id="t2")
    assert codec.decode(codec.encode(again)) == again


def test_a_renamed_field_is_read_from_both_versions():
    directory, steps = MemoryDirectory(), (upcast(1, rename("name", to="customer")),)
    old, new = versions(("name", str | None)), versions(("customer", str | None))
    message = ProtobufCodec(old, SUBJECT, directory).encode(old(NOW, None, id="t1"))
    codec = ProtobufCodec(new, SUBJECT, directory, steps)
    codec.encode(new(NOW, "ada", id="t2"))
    assert codec.decode(message).customer is None
    assert parsed(directory.written(SUBJECT, 2).text).file.message_type[0].field[2].number == 3


def test_types_that_read_each_other_on_the_wire():
    directory = MemoryDirectory()
    old, new = versions(("a", bool), ("b", str)), versions(("a", int), ("b", bytes))
    message = ProtobufCodec(old, SUBJECT, directory).encode(old(NOW, True, "é", id="t1"))
    assert ProtobufCodec(new, SUBJECT, directory).decode(message) == new(NOW, 1, "é".encode(), id="t1")


# Other producers

FOREIGN = """syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Address { string street = 1; }
message Shop {
  message Sale {
    string id = 12;
    Channel channel = 1;
    google.protobuf.StringValue note = 3;
    oneof price { string total = 4; int32 points = 5; }
    sfixed32 count = 6;
    map<int32, string> names = 7;
    Address to = 8;
    Tree unwanted = 9;
    google.protobuf.Timestamp at = 10;
    bytes rest = 11;
  }
  enum Channel { CHANNEL_UNSPECIFIED = 0; CHANNEL_WEB = 1; CHANNEL_SHIP = 2; }
  message Tree { repeated Tree branches = 1; }
}
"""


@dataclass(frozen=True)
class Address:
    street: str


@dataclass(frozen=True)
class Sale(Event):
    channel: Channel | None
    note: str | None
    total: Annotated[Decimal, Precision(12, 2)] | None
    count: int
    names: dict[str, str]
    to: Address | None
    at: datetime
    rest: bytes = b""


def foreign(directory, **fields):
    id = directory.id_for(SUBJECT, SchemaKind.PROTOBUF, FOREIGN)
    message = files_of(directory.written(SUBJECT, id)).message((1, 0))
    return b"\0" + id.to_bytes(4, "big") + b"\x04\x02\x00" + message(**fields).SerializeToString()


def test_a_message_that_is_not_the_first_of_its_file_and_uses_well_known_types():
    directory = MemoryDirectory()
    whole = foreign(
        directory,
        id="s1",
        channel=1,
        note={"value": "hi"},
        total="12.5",
        count=-3,
        names={4: "four"},
        to={"street": "Way"},
        unwanted={"branches": [{}, {"branches": [{}]}]},
        at=NOW,
    )
    read = ProtobufCodec(Sale, SUBJECT, directory).decode(whole)
    assert read == Sale(Channel.WEB, "hi", Decimal("12.5"), -3, {"4": "four"}, Address("Way"), NOW, id="s1")
    bare = ProtobufCodec(Sale, SUBJECT, directory).decode(foreign(directory, points=3, at=NOW))
    assert bare == Sale(None, None, None, 0, {}, None, NOW, id="")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"channel": 2, "at": NOW}, "SHIP"),
        ({"channel": 9, "at": NOW}, "channel"),
        ({"total": "lots", "at": NOW}, "total"),
        ({"total": "1.234", "at": NOW}, "2 of them behind the point"),
        ({}, "at"),
        ({"at": {"seconds": 2**62}}, "not a Sale"),
    ],
)
def test_what_does_not_fit_the_class_is_refused(fields, why):
    directory = MemoryDirectory()
    with pytest.raises(DecodeError, match=why):
        ProtobufCodec(Sale, SUBJECT, directory).decode(foreign(directory, **fields))


@pytest.mark.parametrize(
    "indexes", [b"", b"\x02", b"\x04\x02", b"\x02\x09", b"\x01", b"\xff" * 6, b"\x06\x02\0\0"]
)
def test_bad_message_indexes_are_refused(indexes):
    directory = MemoryDirectory()
    header = foreign(directory)[:5]
    with pytest.raises(DecodeError):
        ProtobufCodec(Sale, SUBJECT, directory).decode(header + indexes)


def test_unknown_fields_are_ignored_or_refused():
    directory = MemoryDirectory()
    message = ProtobufCodec(Sale, SUBJECT, directory).encode(
        Sale(None, None, None, 0, {}, Address("Way"), NOW, id="s1")
    )
    stranger = message + b"\xa0\x06\x01"  # number 100
    assert ProtobufCodec(Sale, SUBJECT, directory).decode(stranger).id == "s1"
    strict = ProtobufCodec(Sale, SUBJECT, directory, unknown="refuse")
    assert strict.decode(message).id == "s1"
    with pytest.raises(DecodeError, match="fields that its schema does not have"):
        strict.decode(stranger)


def test_another_program_reads_our_messages_with_the_registered_text():
    directory = MemoryDirectory()
    message = ProtobufCodec(Sale, SUBJECT, directory).encode(
        Sale(Channel.STORE, None, Decimal("0.00"), 7, {"a": "b"}, None, NOW, b"\xff", id="s1")
    )
    schema = parse(SchemaKind.PROTOBUF, directory.written(SUBJECT, 1).text).content
    pool = DescriptorPool()
    for each in (*schema.imports, schema.file):
        pool.Add(each)
    read = GetMessageClass(pool.FindMessageTypeByName("Sale")).FromString(message[6:])
    assert (read.channel, read.HasField("note"), read.total, read.count) == (2, False, "0.00", 7)
    assert (dict(read.names), read.HasField("to"), read.rest) == ({"a": "b"}, False, b"\xff")
    assert read.at.ToDatetime(tzinfo=UTC) == NOW


def test_a_decoder_can_be_sent_to_another_process():
    directory = MemoryDirectory()
    codec = ProtobufCodec(Sale, SUBJECT, directory)
    message = codec.encode(Sale(None, None, None, 0, {}, None, NOW, id="s1"))
    decoder = Decoder(Sale, files_of(directory.written(SUBJECT, 1)))
    decoder(message[5:])
    assert pickle.loads(pickle.dumps(decoder))(message[5:]).id == "s1"


# The extra


def test_without_the_extra_format_and_schema_are_refused_with_the_hint(monkeypatch):
    monkeypatch.setattr(extra, "find_spec", lambda _: None)
    with pytest.raises(TopicError, match=r"penstock\[protobuf\]"):
        Topic("sales", Sale, format="protobuf")
    with pytest.raises(InvalidSchemaError, match=r"penstock\[protobuf\]"):
        parse(SchemaKind.PROTOBUF, FOREIGN)
