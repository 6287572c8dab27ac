"""Numbers of fields stay with their names, whatever becomes of a class, and none is given twice."""

from dataclasses import field, make_dataclass
from datetime import UTC, datetime
from enum import Enum
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schema_directory import MemoryDirectory

from penstock.errors import EventTypeError
from penstock.events import Event
from penstock.log import Topic
from penstock.schemas import Mode, ProtobufCodec, SchemaKind, rename, upcast
from penstock.schemas.compatibility import check, parse
from penstock.schemas.compatibility.protobuf import compiler
from penstock.schemas.protobuf import proto_text
from penstock.schemas.protobuf.files import parsed
from penstock.schemas.protobuf.numbers import Numbered, numbering

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SUBJECT = "things-value"


@pytest.fixture(autouse=True, scope="module")
def _protoc():
    """Compiling in a process of its own would take most of the time."""
    compiler.run_protoc(compiler.in_this_process)
    yield
    compiler.run_protoc(compiler.in_child)


def class_of(name="Thing", /, **kinds):
    made = [(each, kind, field(default=None)) for each, kind in kinds.items()]
    return make_dataclass(
        name, [("at", datetime, field(default=NOW)), *made], bases=(Event,), frozen=True, namespace={}
    )


def registered(directory, *classes, upcasts=()):
    """The numbers of fields in the versions of classes that are registered one after the other."""
    found = []
    for cls in classes:
        text = ProtobufCodec.numbered(cls, SUBJECT, directory, upcasts).text
        found.append({each.name: each.number for each in parsed(text).file.message_type[0].field})
    return found


def reserved(directory, version):
    message = parsed(directory.written(SUBJECT, version).text).file.message_type[0]
    numbers = {n for each in message.reserved_range for n in range(each.start, each.end)}
    return numbers, {*message.reserved_name}


def test_the_first_version_counts_in_the_order_of_the_class():
    assert registered(MemoryDirectory(), class_of(a=str | None, b=int | None)) == [
        {"id": 1, "at": 2, "a": 3, "b": 4}
    ]


def test_another_order_is_the_same_schema():
    directory = MemoryDirectory()
    one, other = class_of(a=str | None, b=int | None), class_of(b=int | None, a=str | None)
    ids = {ProtobufCodec.numbered(each, SUBJECT, directory).id for each in (one, other)}
    assert ids == {1}


def test_what_is_added_gets_a_new_number_and_what_is_gone_leaves_its_own_reserved():
    directory = MemoryDirectory()
    first, second, third = registered(
        directory,
        class_of(a=str | None, b=int | None),
        class_of(b=int | None, c=str | None),
        class_of(d=str | None, b=int | None),
    )
    assert (first["b"], second["b"], third["b"]) == (4, 4, 4)
    assert (second["c"], third["d"]) == (5, 6)
    assert reserved(directory, 3) == ({3, 5}, {"a", "c"})


def test_a_class_that_is_rolled_back_is_no_new_version():
    directory = MemoryDirectory()
    old, new = class_of(a=str | None), class_of(a=str | None, b=int | None)
    ids = [ProtobufCodec.numbered(each, SUBJECT, directory).id for each in (old, new, old, new, old)]
    assert ids == [1, 2, 1, 2, 1]


def test_a_field_that_comes_back_has_its_number_unless_it_is_another_type():
    directory = MemoryDirectory()
    *_, same, other = registered(
        directory,
        class_of(a=str | None),
        class_of(b=int | None),
        class_of(b=int | None, a=str | None, c=int | None),
        class_of(b=int | None, c=int | None),
        class_of(b=int | None, c=int | None, a=float | None),
    )[2::2]
    assert same["a"] == 3
    assert other["a"] == 6
    assert reserved(directory, 5) == ({3}, set())


def test_a_renamed_field_keeps_its_number_and_its_name_may_be_used_again():
    directory, steps = MemoryDirectory(), (upcast(1, rename("a", to="b")),)
    registered(directory, class_of(a=str | None))
    second, third = registered(
        directory, class_of(b=str | None), class_of(b=str | None, a=str | None), upcasts=steps
    )
    assert second["b"] == 3
    assert (third["b"], third["a"]) == (3, 4)


def test_members_of_an_enum_and_fields_inside_keep_theirs_too():
    def versions(members, fields):
        color = Enum("Color", {each.upper(): each for each in members})
        part = make_dataclass("Part", [(each, str) for each in fields], frozen=True)
        return class_of(color=color | None, parts=list[part] | None)

    directory = MemoryDirectory()
    for each in (("red", "blue"), ("size", "name")), (("green", "blue"), ("name", "weight")):
        registered(directory, versions(*each))
    message = parsed(directory.written(SUBJECT, 2).text).file.message_type[0]
    inner = {each.name: {field.name: field.number for field in each.field} for each in message.nested_type}
    assert inner["Part"] == {"name": 2, "weight": 3}
    numbers = {each.name: each.number for each in message.enum_type[0].value}
    assert numbers == {"COLOR_UNSPECIFIED": 0, "COLOR_BLUE": 2, "COLOR_GREEN": 3}
    assert [*message.enum_type[0].reserved_name] == ["COLOR_RED"]


def test_the_numbers_of_another_producers_version_are_followed():
    directory = MemoryDirectory()
    text = """syntax = "proto3"; import "google/protobuf/timestamp.proto";
    message Thing {
      reserved 7, 100 to max;
      string a = 6; google.protobuf.Timestamp at = 2; string id = 9;
    }"""
    directory.id_for(SUBJECT, SchemaKind.PROTOBUF, text)
    (numbers,) = registered(directory, class_of(a=str | None, b=int | None))
    assert numbers == {"id": 9, "at": 2, "a": 6, "b": 1}
    assert "reserved 7, 100 to max;" in directory.written(SUBJECT, 2).text


def test_numbers_that_protobuf_keeps_for_itself_are_left_out():
    before = Numbered({str(n): n for n in range(1, 19_000)}, {}, (), ())
    assert numbering({"new": ("", "string")}, [before]).numbers == {"new": 20_000}


NAMES = ("one", "two", "three", "four")
KINDS = (str, int, float, bool, bytes, list[str], dict[str, int])
field_sets = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(KINDS), max_size=4)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(history=st.lists(field_sets, min_size=2, max_size=5))
def test_no_number_ever_stands_for_two_names(history):
    directory = MemoryDirectory()
    classes = [class_of(**{name: kind | None for name, kind in each.items()}) for each in history]
    numbers = registered(directory, *classes)
    owners = {}
    for fields, kinds in zip(numbers, history, strict=True):
        assert {*fields} == {"id", "at", *kinds}
        for name, number in fields.items():
            assert owners.setdefault(number, name) == name
    for at, (before, after) in enumerate(pairwise(history)):
        for name in [each for each in before if after.get(each) == before[each]]:
            assert numbers[at + 1][name] == numbers[at][name]


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(before=field_sets, added=st.sets(st.sampled_from(NAMES)), gone=st.sets(st.sampled_from(NAMES)))
def test_fields_that_come_and_go_are_compatible_in_both_directions(before, added, gone):
    after = {name: kind for name, kind in before.items() if name not in gone}
    after |= {name: str for name in added if name not in before}
    directory = MemoryDirectory()
    for each in (before, after):
        registered(directory, class_of(**{name: kind | None for name, kind in each.items()}))
    last = len(directory._known)
    old, new = (parse(SchemaKind.PROTOBUF, directory.written(SUBJECT, id).text) for id in (1, last))
    assert check(new, [old], Mode.FULL) == []


@pytest.mark.parametrize(
    ("kinds", "seen"),
    [
        ({"größe": int}, "größe"),
        ({"a_b": int, "aB": int}, "aB"),
        ({"part": make_dataclass("PartWrapped", [("wrapped", int)], frozen=True)}, "PartWrapped"),
    ],
)
def test_a_class_that_protobuf_has_no_names_for_is_refused_when_it_is_declared(kinds, seen):
    with pytest.raises(EventTypeError, match=seen):
        Topic("things", class_of(**kinds), format="protobuf")


def test_two_classes_of_one_name_are_refused():
    one, other = (make_dataclass("Part", [(name, int)], frozen=True) for name in ("a", "b"))
    with pytest.raises(EventTypeError, match="two classes are called Part"):
        proto_text(class_of(a=one, b=other))
