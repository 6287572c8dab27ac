"""From bytes to events: JSON and lines by a template, what the inlet fills in, and what it refuses."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import DataError, InletError
from penstock.events import Event, Precision
from penstock.inlets import Messages
from penstock.inlets.line_template import LineTemplate
from penstock.inlets.reader import Reader
from penstock.log import Table, Topic

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)


class Unit(Enum):
    CELSIUS = "C"


@dataclass(frozen=True)
class Reading(Event):
    sensor: str
    degrees: float
    at: datetime
    price: Annotated[Decimal, Precision(6, 2)] | None = None
    unit: Unit = Unit.CELSIUS
    tags: list[str] | None = None


TOPIC = Topic("readings", Reading, key="sensor")
CODEC = TOPIC.codec()


def read(data, topic=TOPIC, **how):
    """The event of a message, as a reader of the topic will see it."""
    encoded = Reader(Messages(topic, **({"received_at": "at"} | how))).read(data, LATER)
    return encoded.key, CODEC.decode(encoded.value)


def test_a_json_object_is_an_event():
    key, event = read(
        b'{"id": "r1", "sensor": "hall", "degrees": 3, "at": "2026-01-01T00:00:00Z", "price": 0.1}'
    )
    assert key == b"hall"
    assert event == Reading("hall", 3.0, NOW, Decimal("0.10"), id="r1")


def test_what_a_message_leaves_out_is_filled_in():
    data = b'{"sensor": "hall", "degrees": 21.5}'
    (_, one), (_, other) = read(data), read(data)
    assert one.at == LATER
    assert len({one.id, other.id}) == 2


@pytest.mark.parametrize(
    "data",
    [
        b"", b"null", b"[]", b'"x"', b"{broken", b"\xff", b'{"sensor": "\xff", "degrees": 1}',
        b'{"sensor": "hall"}', b'{"sensor": "hall", "degrees": "warm"}', b'{"sensor": null, "degrees": 1}',
        b'{"id": null, "sensor": "hall", "degrees": 1}', b'{"sensor": "hall", "degrees": NaN}',
        b'{"sensor": "hall", "degrees": 1, "at": "noon"}', b'{"sensor": "hall", "degrees": 1, "at": null}',
        b'{"sensor": "hall", "degrees": 1, "price": 123456.7}', b'{"sensor": "hall", "degrees": 1} {}',
    ],
)  # fmt: skip
def test_what_is_no_such_event_is_refused(data):
    with pytest.raises(DataError):
        read(data)


def test_a_time_has_to_come_with_the_message_unless_that_of_receipt_is_wanted():
    with pytest.raises(DataError, match="missing required field `at`"):
        read(b'{"sensor": "hall", "degrees": 21.5}', received_at=None)


def test_unknown_fields_are_the_topics_matter():
    data = b'{"sensor": "hall", "degrees": 21.5, "more": 1}'
    assert read(data)[1].degrees == 21.5
    with pytest.raises(DataError, match="unknown field `more`"):
        read(data, Topic("readings", Reading, unknown="refuse"))


def test_a_tables_row_has_a_key():
    @dataclass(frozen=True)
    class Row(Event):
        name: str | None
        at: datetime

    table = Table("rows", Row, key="name")
    with pytest.raises(DataError, match="the key 'name' is None"):
        read(b'{"name": null}', table)


def test_a_line_is_an_event():
    key, event = read(b"hall: 21.5 C 0.10\r\n", line="{sensor}: {degrees} {unit} {price}")
    assert key == b"hall"
    assert event == Reading("hall", 21.5, LATER, Decimal("0.10"), id=event.id)


@pytest.mark.parametrize(
    "data", [b"hall", b"hall nan", b"hall inf", b"hall 1e400", b"hall warm", b" ", b"\xff 1", b"hall  1"]
)
def test_a_line_that_does_not_fit_is_refused(data):
    with pytest.raises(DataError):
        read(data, line="{sensor} {degrees}")


def test_a_line_may_hold_its_time_and_its_id():
    _, event = read(b"r7|hall|1|1767225600", line="{id}|{sensor}|{degrees}|{at}", received_at=None)
    assert (event.id, event.at) == ("r7", NOW)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("", "names no field"), ("sensor", "names no field"), ("{sensor} {sensor}", "twice"),
        ("{sensor}{degrees}", "nothing between"), ("{sensor} {degrees} {", "bracket"),
        ("{sensor} {warmth}", "Reading.warmth does not exist"), ("{sensor}", "has no 'degrees'"),
        ("{sensor} {degrees} {tags}", "Reading.tags can't stand in a line"),
    ],
)  # fmt: skip
def test_a_template_is_checked_when_it_is_declared(line, what):
    with pytest.raises(InletError, match=what):
        Messages(TOPIC, line=line, received_at="at")


def test_a_line_without_a_time_is_refused_when_it_is_declared():
    with pytest.raises(InletError, match="has no 'at', which Reading needs"):
        Messages(TOPIC, line="{sensor} {degrees}")


@pytest.mark.parametrize("field", ["degrees", "nothing"])
def test_only_a_time_can_be_that_of_receipt(field):
    with pytest.raises(InletError):
        Messages(TOPIC, received_at=field)


def test_an_event_that_is_too_large_for_the_log_is_refused():
    with pytest.raises(DataError, match="the most are 900000"):
        read(b"\x01" * 200_000 + b" 1", line="{sensor} {degrees}")


WORD = st.text(st.characters(codec="utf-8", exclude_characters=" \r\n"))


@given(st.lists(WORD, min_size=3, max_size=3))
def test_what_a_template_writes_it_reads(words):
    template = LineTemplate("<{a} {b} {c}>")
    assert list(template.values("<{} {} {}>".format(*words)).values()) == words


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    template = LineTemplate("{a} {b};")
    try:
        values = template.values(text)
    except DataError:
        return
    assert f"{values['a']} {values['b']};" == text


def test_a_hostile_line_takes_no_longer_than_it_is_long():
    template = LineTemplate(" ".join(f"{{f{number}}}" for number in range(30)) + "!")
    with pytest.raises(DataError):
        template.values(" " * 500_000)
