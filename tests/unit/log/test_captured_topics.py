"""Topics of captured tables as values: what they are dated by, and what is refused when they are declared."""

from dataclasses import dataclass
from datetime import date, datetime

import pytest

from penstock.errors import EventTypeError, TopicError
from penstock.events import Event
from penstock.log import Table, Topic
from penstock.schemas import rename, upcast

FORMATS = ["debezium-json", "debezium-avro"]


@dataclass(frozen=True)
class Order(Event):
    id: int
    customer: str


@dataclass(frozen=True)
class Dated(Event):
    id: int
    at: datetime


@dataclass(frozen=True)
class Daily(Event):
    id: int
    at: date


@dataclass(frozen=True)
class Ambiguous(Event):
    id: int
    note: str | None = "none"


@pytest.mark.parametrize("format", FORMATS)
def test_a_captured_table_needs_no_time_of_its_own(format):
    orders = Table("shop.public.orders", Order, key="id", format=format)
    assert (orders.is_captured, orders.commit_time) == (True, "at")
    assert Table("orders", Order, key="id", format=format, time="committed").commit_time == "committed"
    assert Table("orders", Dated, key="id", format=format).commit_time is None


def test_other_formats_still_need_one():
    assert Topic("orders", Dated).commit_time is None
    with pytest.raises(EventTypeError, match="'at' is missing"):
        Topic("orders", Order)
    with pytest.raises(EventTypeError, match="'at' is not a datetime"):
        Table("orders", Daily, key="id", format="debezium-json")


def test_only_avro_has_schemas_in_the_registry():
    found = {each: Topic("orders", Dated, key="id", format=each).is_registered for each in (*FORMATS, "json")}
    assert found == {"debezium-json": False, "debezium-avro": True, "json": False}


def test_a_captured_topic_is_not_compacted_by_us():
    """A truncate has no key, which a compacted topic does not take."""
    assert "cleanup.policy" not in Table("orders", Order, key="id", format="debezium-json").config
    assert Table("orders", Dated, key="id").config["cleanup.policy"] == "compact"


@pytest.mark.parametrize(
    ("event", "options", "message"),
    [
        (Order, {}, "has no key"),
        (Order, {"key": "id", "unknown": "refuse"}, "has unknown="),
        (Order, {"key": "id", "upcasts": (upcast(1, rename("a", to="customer")),)}, "has upcasts"),
        (Ambiguous, {"key": "id"}, "Ambiguous.note may be None but is 'none' by default"),
    ],
)
def test_what_a_capture_does_not_give_is_refused(event, options, message):
    with pytest.raises(TopicError, match=message):
        Topic("orders", event, format="debezium-json", **options)


def test_only_flows_decode_it():
    with pytest.raises(TopicError, match=r"only flows and penstock\.process\.read decode") as raised:
        Table("orders", Order, key="id", format="debezium-json").codec()
    assert "json or avro" in raised.value.hint
