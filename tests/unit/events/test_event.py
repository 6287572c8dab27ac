"""What an event class may hold, and what it refuses."""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from random import Random
from uuid import RFC_4122, UUID

import pytest
from tests.event_samples import Channel, Line, Order, random_order

from penstock.errors import EventError, EventTypeError
from penstock.events import Event, Precision, fields_of, new_id, new_ids, time_field, time_of

ORDER = random_order(Random(7))


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("coupon", 5, "Order.coupon is 5 (int), expected str"),
        ("coupon", Channel.WEB, "expected str"),
        ("coupon", "\ud800", "UTF-8"),
        ("count", 1.0, "expected int"),
        ("count", True, "expected int"),
        ("count", 2**63, "64 bits"),
        ("weight", "1", "expected float"),
        ("weight", float("nan"), "finite"),
        ("paid", 1, "expected bool"),
        ("receipt", "x", "expected bytes"),
        ("at", datetime(2026, 1, 1), "time zone"),
        ("at", "2026-01-01", "expected datetime"),
        ("due", datetime(2026, 1, 1, tzinfo=UTC), "expected date"),
        ("customer", "c1", "expected UUID"),
        ("channel", "web", "expected a Channel"),
        ("total", Decimal("1.005"), "at most 12 digits, 2 of them behind the point"),
        ("total", Decimal(10) ** 11, "at most 12 digits"),
        ("total", Decimal("NaN"), "expected Decimal"),
        ("total", 1.5, "expected Decimal"),
        ("lines", (), "expected list"),
        ("lines", [ORDER.first, "x"], "Order.lines[1] is 'x'"),
        ("notes", {1: "x"}, "Order.notes{key} is 1"),
        ("notes", {"a": 1}, "Order.notes['a'] is 1"),
        ("first", None, "expected a Line"),
        ("first", Line("x", Decimal("0.001")), "Order.first.price"),
    ],
)
def test_a_wrong_value_is_refused_with_field_value_and_expectation(field, value, says):
    with pytest.raises(EventError) as caught:
        replace(ORDER, **{field: value})
    assert says in str(caught.value)
    assert caught.value.field.startswith(field)


def test_values_are_kept_in_one_form():
    elsewhere = datetime(2026, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    order = replace(ORDER, at=elsewhere, weight=3, total=Decimal("1.5"))
    assert (order.at, order.at.tzinfo) == (datetime(2026, 1, 1, tzinfo=UTC), UTC)
    assert type(order.weight) is float
    assert str(order.total) == "1.50"


def test_every_event_has_a_type_a_time_and_an_id():
    assert Order.event_type == "shop.order"
    assert time_of(ORDER) == ORDER.at
    assert UUID(ORDER.id).version == 7
    assert ORDER.id != random_order(Random(7)).id


def test_ids_are_sorted_by_time():
    assert new_id(1) < new_id(2) < new_id(1_700_000_000_000)


def test_many_ids_at_once_are_ids_like_others():
    made = new_ids(2_000)
    assert len({*made}) == 2_000
    assert {(UUID(each).version, UUID(each).variant, str(UUID(each)) == each) for each in made} == {
        (7, RFC_4122, True)
    }
    assert new_id(1) < made[0] < new_id(2**47)
    assert new_ids(0) == []


def test_another_field_can_be_the_time():
    @dataclass(frozen=True)
    class Reading(Event, time="measured"):
        measured: datetime

    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert time_of(Reading(now)) == now


def test_an_event_without_time_is_refused():
    @dataclass(frozen=True)
    class Timeless(Event):
        at: date

    with pytest.raises(EventTypeError, match="no event time"):
        time_field(Timeless)


class Level(Enum):
    LOW = 1


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (Decimal, "unknown size"),
        (object, "object"),
        (dict[int, str], "keys must be str"),
        (str | int, "unions"),
        (Level, "expected a str"),
        (set[str], "set"),
    ],
)
def test_a_field_that_can_not_be_stored_is_refused(annotation, says):
    @dataclass(frozen=True)
    class Odd(Event):
        value: annotation
        at: datetime

    with pytest.raises(EventTypeError, match=says) as caught:
        fields_of(Odd)
    assert "Odd.value" in str(caught.value)


def test_a_class_that_is_no_frozen_dataclass_is_refused():
    class Plain(Event):
        pass

    @dataclass(frozen=True, slots=True)
    class Slotted(Event):
        at: datetime

    with pytest.raises(EventTypeError, match="frozen dataclass"):
        fields_of(Plain)
    with pytest.raises(EventTypeError, match="slots"):
        fields_of(Slotted)


@dataclass(frozen=True)
class Tree:
    left: "Tree | None"


def test_a_class_that_holds_itself_is_refused():
    with pytest.raises(EventTypeError, match="holds itself"):
        fields_of(Tree)


@pytest.mark.parametrize(("digits", "scale"), [(0, 0), (39, 0), (5, 6), (5, -1)])
def test_a_precision_out_of_range_is_refused(digits, scale):
    with pytest.raises(EventTypeError, match="can't be stored"):
        Precision(digits, scale)
