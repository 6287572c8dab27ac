"""Old and new versions of an event class read each other wherever the compatibility mode allows it."""

import json
from dataclasses import field, make_dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.schema_directory import MemoryDirectory

from penstock.events import Event, Precision
from penstock.schemas import AvroCodec, JsonSchemaCodec, Mode, SchemaKind
from penstock.schemas.compatibility import check, parse

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Money = Annotated[Decimal, Precision(9, 2)]


class Two(Enum):
    A = "a"
    B = "b"


class Three(Enum):
    A = "a"
    B = "b"
    C = "c"


Three.__name__ = Three.__qualname__ = "Two"  # one enum that has grown
VALUES = {
    str: st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=4),
    Money: st.decimals(-9999, 9999, places=2),
    datetime: st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
    date: st.dates(),
    UUID: st.uuids(),
    Two: st.sampled_from(Two),
    Three: st.sampled_from(Three),
    list[str]: st.lists(st.text("ab", max_size=2), max_size=2),
    dict[str, int]: st.dictionaries(st.text("ab", max_size=2), st.integers(0, 9), max_size=2),
}
NAMES = ("one", "two", "three")


@st.composite
def field_sets(draw):
    """Some fields, each with a type, perhaps optional and perhaps with a default."""
    found = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        kind, optional = (
            draw(st.sampled_from([each for each in VALUES if each is not Three])),
            draw(st.booleans()),
        )
        default = draw(st.none() if optional else VALUES[kind]) if draw(st.booleans()) else ...
        found[name] = (kind, optional, default)
    return found


@st.composite
def changes(draw):
    """Two field sets of which the second is the first with a few changes."""
    before = draw(field_sets())
    after = dict(before)
    for name, value in draw(field_sets()).items():
        if draw(st.booleans()):
            after[name] = value
        else:
            after.pop(name, None)
    grown = draw(st.booleans())
    for name, (kind, optional, default) in after.items():
        if kind is Two and grown:
            after[name] = (Three, optional, ... if default is ... else Three.A)
        elif name in before and default is ... and draw(st.booleans()):
            after[name] = ({int: float, str: bytes}.get(kind, kind), optional, default)
    return before, after


def class_of(fields):
    """Make the event class of a field set."""
    required = [
        (name, kind | None if optional else kind)
        for name, (kind, optional, default) in fields.items()
        if default is ...
    ]
    others = []
    for name, (kind, optional, default) in fields.items():
        if default is not ...:
            made = (
                field(default_factory=type(default))
                if isinstance(default, list | dict)
                else field(default=default)
            )
            others.append((name, kind | None if optional else kind, made))
    return make_dataclass(
        "Thing", [*required, ("at", datetime, field(default=NOW)), *others], bases=(Event,), frozen=True
    )


def event_of(draw, cls, fields):
    values = {
        name: draw(st.none() | VALUES[kind] if optional else VALUES[kind])
        for name, (kind, optional, _) in fields.items()
    }
    return cls(id="t1", at=NOW, **values)


@pytest.mark.parametrize(
    ("codec", "kind"), [(AvroCodec, SchemaKind.AVRO), (JsonSchemaCodec, SchemaKind.JSON)]
)
@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data(), change=changes())
def test_what_the_mode_allows_can_be_read(codec, kind, data, change):
    old, new = (class_of(fields) for fields in change)
    old_schema, new_schema = (parse(kind, codec.schema_text(cls)) for cls in (old, new))
    for mode, reader, writer, fields in (
        (Mode.BACKWARD, new, old, change[0]),
        (Mode.FORWARD, old, new, change[1]),
    ):
        if check(new_schema, [old_schema], mode):
            continue
        directory = MemoryDirectory()
        written = event_of(data.draw, writer, fields)
        message = codec(writer, "things-value", directory).encode(written)
        read = codec(reader, "things-value", directory).decode(message)
        shared = {each for each in NAMES if hasattr(read, each) and hasattr(written, each)}
        for name in shared:
            assert same(getattr(read, name), getattr(written, name))


def same(read, written):
    if isinstance(read, str) and not isinstance(written, str):
        return True  # in JSON a date or a decimal is text, and may be read as such
    if isinstance(written, Enum):
        return read.value == written.value
    if isinstance(read, bytes) and isinstance(written, str):
        return read == written.encode()
    return read == written or (isinstance(read, float) and read == float(written))


BASE = {"one": (int, False, ...), "two": (str, True, None)}
BREAKING = [
    ("a required field is added", Mode.BACKWARD, BASE | {"three": (int, False, ...)}),
    ("a required field is removed", Mode.FORWARD, {"two": (str, True, None)}),
    ("a type is changed", Mode.BACKWARD, BASE | {"one": (bool, False, ...)}),
    ("an optional field is made required", Mode.BACKWARD, BASE | {"two": (str, False, ...)}),
    ("a field is made optional", Mode.FORWARD, BASE | {"one": (int, True, ...)}),
    ("a wider number is narrowed", Mode.FORWARD, BASE | {"one": (float, False, ...)}),
    ("a decimal takes the place of text", Mode.BACKWARD, BASE | {"two": (Money, True, None)}),
]


@pytest.mark.parametrize("codec", [AvroCodec, JsonSchemaCodec])
@pytest.mark.parametrize(("what", "mode", "after"), BREAKING, ids=[each[0] for each in BREAKING])
def test_what_breaks_readers_is_refused_with_its_field(codec, what, mode, after):
    old, new = (parse(codec.kind, codec.schema_text(class_of(fields))) for fields in (BASE, after))
    problems = check(new, [old], mode)
    assert problems
    assert any(name in problems[0].path for name in NAMES)


def test_a_default_of_the_class_fills_a_field_that_old_events_lack():
    fee = Decimal("0.50")
    old, new = class_of({}), class_of({"one": (Money, False, fee), "two": (bytes, False, b"\xff")})
    directory = MemoryDirectory()
    message = AvroCodec(old, "s", directory).encode(old(id="t1"))
    read = AvroCodec(new, "s", directory).decode(message)
    assert (read.one, read.two) == (fee, b"\xff")
    assert json.loads(AvroCodec.schema_text(new))["fields"][2]["default"] == "2"
