"""The shape of an event class on the wire: a twin that C code fills and checks, and the way back."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

import msgspec

from penstock.events.checks import check_for
from penstock.events.kinds import Choice, Field, Fixed, Kind, Many, Mapped, Maybe, Record, Scalar, fields_of

Revive = Callable[[Any], Any]


@dataclass(frozen=True)
class Shape:
    """`twin` is the msgspec type that a message is read into; `revive` makes the event of it.

    `strict` refuses fields it does not know; `lenient` is for messages whose own schema vouches for them.
    """

    strict: type
    lenient: type
    revive: Revive


def shape_of(cls: type) -> Shape:
    """Return the shape of an event class or nested dataclass."""
    return _shape(cls)


@cache
def _shape(cls: type) -> Shape:
    fields = fields_of(cls)
    strict, lenient = (
        msgspec.defstruct(
            cls.__name__,
            [_twin_field(field, kind) for field in fields],
            kw_only=True,
            forbid_unknown_fields=kind == "strict",
        )
        for kind in ("strict", "lenient")
    )
    return Shape(strict, lenient, _reviver(cls, fields))


def _twin_field(field: Field, twin: str) -> Any:
    wire = _wire_type(field.kind, twin)
    if field.required:
        return (field.name, wire)
    if isinstance(field.default, list | dict):
        return (field.name, wire, msgspec.field(default_factory=type(field.default)))
    return (field.name, wire, field.default)


def _wire_type(kind: Kind, twin: str) -> Any:
    match kind:
        case Scalar(python) if python is int:
            return Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
        case Scalar(python) if python is datetime:
            return Annotated[datetime, msgspec.Meta(tz=True)]
        case Scalar(python):
            return python
        case Fixed():
            return Decimal
        case Choice(enum):
            return enum
        case Maybe(inner):
            return _wire_type(inner, twin) | None
        case Many(item):
            return list[_wire_type(item, twin)]  # type: ignore[misc]
        case Mapped(value):
            return dict[str, _wire_type(value, twin)]  # type: ignore[misc]
        case Record(cls):
            return getattr(shape_of(cls), twin)


def _reviver(cls: type, fields: tuple[Field, ...]) -> Revive:
    """Write the function that fills an instance: the twin was checked, so `__init__` would only check again.

    It is on the path of every event that is read, so it is written out field by field, as dataclasses do.
    """
    repairs = {f"repair_{field.name}": _repair(field.kind) for field in fields}
    lines = [
        f"  held[{field.name!r}] = "
        + (
            f"repair_{field.name}(twin.{field.name})"
            if repairs[f"repair_{field.name}"]
            else f"twin.{field.name}"
        )
        for field in fields
    ]
    source = "\n".join(
        ["def revive(twin):", "  made = new(cls)", "  held = made.__dict__", *lines, "  return made"]
    )
    scope: dict[str, Any] = {"new": object.__new__, "cls": cls, **repairs}
    exec(source, scope)  # noqa: S102 - the names are a dataclass's fields: identifiers
    revive: Revive = scope["revive"]
    return revive


def _repair(kind: Kind) -> Revive | None:
    """What the twin could not check or make by itself: a decimal's size and nested classes."""
    match kind:
        case Fixed():
            return check_for(kind)
        case Record(cls):
            return shape_of(cls).revive
        case Maybe(inner) | Many(inner) | Mapped(inner):
            repair = _repair(inner)
            return _within(kind, repair) if repair else None
    return None


def _within(kind: Kind, repair: Revive) -> Revive:
    match kind:
        case Maybe():
            return lambda value: None if value is None else repair(value)
        case Many():
            return lambda values: [repair(value) for value in values]
        case _:
            return lambda values: {key: repair(value) for key, value in values.items()}
