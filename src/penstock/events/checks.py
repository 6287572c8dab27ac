"""Checks that a value fits its field, and says what was wrong when it does not."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any
from uuid import UUID

from penstock.errors import EventError
from penstock.events.kinds import (
    Choice,
    Fixed,
    Kind,
    Many,
    Mapped,
    Maybe,
    Precision,
    Record,
    Scalar,
    fields_of,
)

Check = Callable[[Any], Any]
WHOLE_RANGE = range(-(2**63), 2**63)


class UnfitError(Exception):
    """A value that does not fit; the path grows as the error leaves nested values."""

    def __init__(self, expected: str, seen: object) -> None:
        super().__init__(expected)
        self.expected = expected
        self.seen = seen
        self.path = ""


Checks = tuple[tuple[str, Check], ...]


def checks_of(cls: type) -> Checks:
    """Return the check of each field, by name."""
    return _checks(cls)


@cache
def _checks(cls: type) -> Checks:
    return tuple((field.name, check_for(field.kind)) for field in fields_of(cls))


def check_for(kind: Kind) -> Check:
    """Return a function that gives back the value in its stored form, or raises UnfitError."""
    match kind:
        case Scalar(python):
            return _SCALAR_CHECKS[python]
        case Fixed(precision):
            return _fixed(precision)
        case Choice(enum):
            return _instance(enum, f"a {enum.__name__}")
        case Maybe(inner):
            return _maybe(check_for(inner))
        case Many(item):
            return _many(check_for(item))
        case Mapped(value):
            return _mapped(check_for(value))
        case Record(cls):
            return _instance(cls, f"a {cls.__name__}", checks_of(cls))


def _text(value: object) -> str:
    if not isinstance(value, str) or isinstance(value, Enum):
        raise UnfitError("str", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise UnfitError("text that can be written as UTF-8", value) from error
    return value


def _whole(value: object) -> int:
    if type(value) is not int:
        raise UnfitError("int", value)
    if value not in WHOLE_RANGE:
        raise UnfitError("an int of 64 bits", value)
    return value


def _real(value: object) -> float:
    if type(value) is int and value in WHOLE_RANGE:
        return float(value)
    if type(value) is not float:
        raise UnfitError("float", value)
    if not isfinite(value):
        raise UnfitError("a finite float (use `float | None` and None for what is not known)", value)
    return value


def _instant(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise UnfitError("datetime", value)
    if value.tzinfo is UTC:
        return value
    if value.utcoffset() is None:
        raise UnfitError("a datetime with a time zone, such as datetime.now(UTC)", value)
    return value.astimezone(UTC)


def _exact(python: type) -> Check:
    def check(value: object) -> Any:
        if type(value) is not python:
            raise UnfitError(python.__name__, value)
        return value

    return check


_SCALAR_CHECKS: dict[type, Check] = {
    str: _text,
    int: _whole,
    float: _real,
    bool: _exact(bool),
    bytes: _exact(bytes),
    datetime: _instant,
    date: _exact(date),
    UUID: _exact(UUID),
}


def _fixed(precision: Precision) -> Check:
    step = Decimal(1).scaleb(-precision.scale)
    quantize = Context(prec=precision.digits, traps=[Inexact, InvalidOperation]).quantize

    def check(value: object) -> Decimal:
        if not isinstance(value, Decimal) or value.is_nan():
            raise UnfitError("Decimal", value)
        try:
            return quantize(value, step)
        except (Inexact, InvalidOperation) as error:
            size = f"{precision.digits} digits, {precision.scale} of them behind the point"
            raise UnfitError(f"a Decimal of at most {size}", value) from error

    return check


def _instance(cls: type, expected: str, inner: Checks = ()) -> Check:
    def check(value: object) -> Any:
        if not isinstance(value, cls):
            raise UnfitError(expected, value)
        settle(value, inner)
        return value

    return check


def settle(value: object, checks: Checks) -> None:
    """Check each field of a frozen dataclass, and keep its stored form in place of what was given."""
    held = value.__dict__
    for name, check in checks:
        given = held[name]
        try:
            stored = check(given)
        except UnfitError as error:
            error.path = f".{name}{error.path}"
            raise
        if stored is not given:
            held[name] = stored


def check_fields(value: object, checks: Checks) -> None:
    """Check a value as `settle` does, and say in our words what does not fit."""
    try:
        settle(value, checks)
    except UnfitError as unfit:
        raise EventError(
            f"{type(value).__name__}{unfit.path} is {unfit.seen!r} ({type(unfit.seen).__name__}), "
            f"expected {unfit.expected}",
            field=unfit.path.lstrip("."),
            seen=unfit.seen,
        ) from None


def _maybe(inner: Check) -> Check:
    return lambda value: None if value is None else inner(value)


def _many(item: Check) -> Check:
    def check(value: object) -> list[Any]:
        if not isinstance(value, list):
            raise UnfitError("list", value)
        return [_at(f"[{index}]", item, each) for index, each in enumerate(value)]

    return check


def _mapped(inner: Check) -> Check:
    def check(value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise UnfitError("dict", value)
        return {_at("{key}", _text, key): _at(f"[{key!r}]", inner, each) for key, each in value.items()}

    return check


def _at(step: str, check: Check, value: object) -> Any:
    try:
        return check(value)
    except UnfitError as error:
        error.path = step + error.path
        raise
