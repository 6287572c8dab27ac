"""Plain values brought to the kinds of a class, as far as its shape does not do it."""

from collections.abc import Callable
from datetime import datetime
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any

from penstock.errors import DecodeError
from penstock.events.kinds import Choice, Kind, Many, Mapped, Maybe, Record, Scalar, fields_of
from penstock.schemas.protobuf.symbols import UNSPECIFIED, symbol

NATIVE = (bytes, datetime)  # the types that a message has besides texts, numbers, lists and maps
Step = Callable[[Any], Any]


@cache
def coercer(cls: type) -> Step:
    """Return a function that makes the values of a message those of a class.

    A field that was left out is null where the class allows it, and missing where it does not.
    """
    nullable = {field.name for field in fields_of(cls) if isinstance(field.kind, Maybe)}
    steps = {field.name: step for field in fields_of(cls) if (step := _step(field.kind))}

    def coerced(values: dict[str, Any]) -> dict[str, Any]:
        made = {name: each for name, each in values.items() if each is not None or name in nullable}
        for name, step in steps.items():
            if made.get(name) is not None:
                made[name] = step(made[name])
        return made

    return coerced


def _step(kind: Kind) -> Step | None:
    match kind:
        case Choice(enum):
            return _chooser(enum)
        case Scalar(python):
            return _SCALARS.get(python)
        case Record(cls):
            return coercer(cls)
        case Maybe(inner) | Many(inner) | Mapped(inner):
            step = _step(inner)
            return _within(kind, step) if step else None
    return None


def _within(kind: Kind, step: Step) -> Step:
    match kind:
        case Maybe():
            return lambda value: None if value is None else step(value)
        case Many():
            return lambda values: [step(value) for value in values]
        case _:
            return lambda values: {key: step(value) for key, value in values.items()}


def _chooser(enum: type[Enum]) -> Step:
    """Members by their value, or by a symbol that any producer would give them."""
    values = {member.value: member.value for member in enum}
    by_symbol = {symbol(member.name): member.value for member in enum}
    by_symbol |= {symbol(value): value for value in values}

    def choose(text: Any) -> Any:
        found = values.get(text) or by_symbol.get(text)
        return text if found is None and text != UNSPECIFIED else found

    return choose


def _real(value: Any) -> Any:
    if not isfinite(value):
        raise DecodeError(f"{value} is not a finite float")
    return value


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _bytes(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


_SCALARS: dict[type, Step] = {float: _real, int: _whole, bytes: _bytes}
