"""Events of strangers: JSON that is checked against a topic's class, and made an event as in Python."""

import dataclasses
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from penstock.documents import Json, JsonObject
from penstock.errors import EventError
from penstock.events import Event, fields_of
from penstock.events.kinds import Kind, Many, Mapped, Maybe, Record
from penstock.gateway.refusal import Refusal
from penstock.log import Table, Topic
from penstock.schemas.shape import shape_of
from penstock.web import strict_json

E = TypeVar("E", bound=Event)
_ENCODE = msgspec.json.Encoder(decimal_format="number").encode
_PLACE = re.compile(r"(?P<rule>.*?)(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_MISSING = "it is missing"
_NAMED = {
    "Object contains unknown field ": "there is no such field",
    "Object missing required field ": _MISSING,
}
_SHOWN = 200
_WHOLE = 18  # digits that every integer of 64 bits has room for


def parsed(data: bytes) -> Json:
    """Return the JSON of a body, with numbers as they are written."""
    try:
        return strict_json.parse(data, parse_float=_decimal, parse_int=_number)
    except ValueError as error:
        hint = "send JSON in UTF-8"
        raise Refusal(400, "gateway.json", f"the body is not valid JSON: {error}", hint=hint) from None


def _number(text: str) -> int | Decimal:
    return int(text) if len(text) <= _WHOLE else _decimal(text)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except ArithmeticError:
        raise ValueError(f"{text[:50]} is no number that can be held") from None


def made_anew(cls: type[Event]) -> dict[str, Callable[[], Any]]:
    """Return the fields that a class makes anew for each event, such as its id."""
    return {
        field.name: field.default_factory
        for field in dataclasses.fields(cls)
        if field.default_factory is not dataclasses.MISSING and field.default_factory not in (list, dict)
    }


class EventReader(Generic[E]):
    """Makes events of a topic's class of JSON; what does not fit is refused with field, value and rule.

    What the class makes anew for each event, such as an id or a time, is made here if it is missing.
    """

    def __init__(self, topic: Topic[E]) -> None:
        self._topic, self._class = topic, topic.event
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(shape_of(topic.event).strict).decode
        self._build: Callable[[Any], E] = partial(_built, Record(topic.event))
        self._made = made_anew(topic.event)

    def read(self, value: Json, place: str = "", id: str | None = None) -> E:
        """Return the event of a JSON object; `id` is what it gets if it has none."""
        if not isinstance(value, dict):
            rule = f"expected an object with the fields of {self._class.__name__}"
            raise _unfit(self._class, place, value, rule)
        event = self._event(self._completed(value, id), place)
        if isinstance(self._topic, Table) and self._topic.key_of(event) is None:
            raise _unfit(self._class, f"{place}.{self._topic.key}", None, "a table's key can't be null")
        return event

    def _completed(self, value: JsonObject, id: str | None) -> JsonObject:
        made = {name: make() for name, make in self._made.items() if name not in value}
        return {**made, **({"id": id} if id is not None and "id" in made else {}), **value}

    def _event(self, value: JsonObject, place: str) -> E:
        try:
            return self._build(self._decode(_ENCODE(value)))
        except msgspec.ValidationError as error:
            path, rule = _explained(str(error))
            raise _unfit(self._class, place + path, _at(value, path), rule) from None
        except EventError as error:
            rule = "expected " + error.message.rpartition(", expected ")[2]
            raise _unfit(self._class, f"{place}.{error.field}", error.seen, rule) from None
        except Exception as error:  # a check of the class's own may fail in any way
            raise _unfit(self._class, place, value, str(error) or type(error).__name__) from None


def _built(kind: Kind, value: Any) -> Any:
    """Make a value as Python code would, so that every check of the classes runs."""
    match kind:
        case Record(cls):
            fields = fields_of(cls)
            return cls(**{each.name: _built(each.kind, getattr(value, each.name)) for each in fields})
        case Maybe(inner):
            return None if value is None else _built(inner, value)
        case Many(item):
            return [_built(item, each) for each in value]
        case Mapped(inner):
            return {key: _built(inner, each) for key, each in value.items()}
    return value


def _explained(said: str) -> tuple[str, str]:
    """What msgspec says, as the path of a field and the rule that it breaks."""
    found = _PLACE.fullmatch(said)
    path, rule = (found["path"] or "", found["rule"]) if found else ("", said)
    for said, meant in _NAMED.items():
        if rule.startswith(said):
            return f"{path}.{rule.removeprefix(said).strip('`')}", meant
    return path, rule[:1].lower() + rule[1:].replace("`", "")


def _at(value: Json, path: str) -> Json:
    """The value at a path, as far as that leads."""
    for name, index in _STEP.findall(path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and index and int(index) < len(value):
            value = value[int(index)]
        else:
            break
    return value


def _unfit(cls: type, path: str, value: object, rule: str) -> Refusal:
    field, shown = path.lstrip("."), value
    if not isinstance(value, bool | int | float | None) or abs(value or 0) > 2**53:
        shown = str(value)[:_SHOWN]
    what = f"{cls.__name__}.{field}" if field and not field.startswith("[") else f"{cls.__name__}{field}"
    return Refusal(
        422,
        "data.event",
        f"{what} is {str(value)[:_SHOWN]!r}: {rule}" if rule != _MISSING else f"{what} is missing",
        hint="/openapi.json has the fields of every event",
        details={"field": field, "value": shown, "rule": rule},
    )
