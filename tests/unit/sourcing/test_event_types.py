"""Event types over the years: renamed, split, removed and upcast, while what was stored stays as it is."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from penstock.errors import ConfigurationError, DecodeError, EventError
from penstock.schemas import default, rename, split, upcast
from penstock.sourcing import DomainEvent, EventTypes, Recorded, part


@dataclass(frozen=True)
class Named(
    DomainEvent,
    formerly=("Christened",),
    upcasts=(
        upcast(1, rename("name", to="full")),
        upcast(2, split("full", into=["first", "last"]), default("title", "")),
    ),
):
    first: str
    last: str | None
    title: str = ""


@dataclass(frozen=True)
class Moved(DomainEvent):
    town: str


@dataclass(frozen=True)
class Left(DomainEvent):
    pass


TYPES = EventTypes(
    (Named, Moved, Left),
    {"MovedAndLeft": (part(Moved, rename("to", to="town")), part(Left))},
    ("Looked",),
)


def record(type, data, schema_version=1):
    return Recorded(
        category="person",
        stream="p",
        version=1,
        type=type,
        schema_version=schema_version,
        at=datetime(2026, 1, 1, tzinfo=UTC),
        data=json.dumps(data),
    )


def test_versions_are_counted_by_the_upcasts():
    assert (Named.schema_version, Moved.schema_version) == (3, 1)


@pytest.mark.parametrize(
    ("type", "data", "version"),
    [
        ("Named", {"first": "Ada", "last": "Byron", "title": ""}, 3),
        ("Named", {"full": "Ada Byron"}, 2),
        ("Named", {"name": "Ada Byron"}, 1),
        ("Christened", {"name": "Ada Byron"}, 1),
    ],
)
def test_each_version_becomes_the_event_of_today(type, data, version):
    assert TYPES.events_of(record(type, data, version)) == (Named("Ada", "Byron"),)


def test_a_type_that_was_split_becomes_several_events_and_a_removed_one_none():
    assert TYPES.events_of(record("MovedAndLeft", {"to": "Bath"})) == (Moved("Bath"), Left())
    assert TYPES.events_of(record("Looked", {"at": "it"})) == ()
    assert TYPES.events_of(record("Left", {})) == (Left(),)


def test_events_come_back_from_their_json():
    for event in (Named("Ada", None, "Countess"), Moved("Bath"), Left()):
        data = json.loads(TYPES.data_of(event))
        assert TYPES.events_of(record(event.event_type, data, event.schema_version)) == (event,)


@pytest.mark.parametrize(
    ("type", "data", "version", "expected"),
    [
        ("Named", {"first": "Ada"}, 4, "schema version is 4, the class's 3"),
        ("Moved", {"town": 7}, 1, "can't be read"),
        ("Moved", {}, 1, "can't be read"),
        ("Vanished", {}, 1, "which nobody declares"),
    ],
)
def test_what_can_not_be_understood_is_an_error_with_its_place(type, data, version, expected):
    with pytest.raises(DecodeError, match=expected) as caught:
        TYPES.events_of(record(type, data, version))
    assert "version 1 of person 'p'" in str(caught.value)


def test_declarations_that_contradict_themselves_are_refused():
    with pytest.raises(ConfigurationError, match="'Moved' is declared twice"):
        EventTypes((Moved,), {}, ("Moved",))
    with pytest.raises(ConfigurationError, match="split into Left"):
        EventTypes((Moved,), {"Old": (part(Left),)})
    with pytest.raises(ConfigurationError, match="not an event of this aggregate"):
        EventTypes((Moved,), {}).data_of(Left())


def test_a_value_that_does_not_fit_is_refused_when_it_is_made():
    with pytest.raises(EventError, match=r"Moved\.town is 7"):
        Moved(7)
