"""The kinds of value an event's field can hold, read once from its annotation."""

import dataclasses
import types
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from penstock.errors import EventTypeError

SCALARS = (str, int, float, bool, bytes, datetime, date, UUID)
MISSING = dataclasses.MISSING


@dataclass(frozen=True)
class Precision:
    """How many digits a decimal has in all, and how many of them behind the point.

    >>> Precision(12, 2)
    Precision(digits=12, scale=2)
    """

    digits: int
    scale: int = 0

    def __post_init__(self) -> None:
        if not (1 <= self.digits <= 38 and 0 <= self.scale <= self.digits):
            raise EventTypeError(
                f"{self} can't be stored", hint="digits are 1 to 38, and scale is 0 to the number of digits"
            )


@dataclass(frozen=True)
class Scalar:
    python: type


@dataclass(frozen=True)
class Fixed:
    precision: Precision


@dataclass(frozen=True)
class Choice:
    enum: type[Enum]


@dataclass(frozen=True)
class Maybe:
    inner: "Kind"


@dataclass(frozen=True)
class Many:
    item: "Kind"


@dataclass(frozen=True)
class Mapped:
    value: "Kind"


@dataclass(frozen=True)
class Record:
    cls: type


Kind = Scalar | Fixed | Choice | Maybe | Many | Mapped | Record


@dataclass(frozen=True)
class Field:
    """A field of an event class; `default` is MISSING where the field has to be on the wire."""

    name: str
    kind: Kind
    default: Any = MISSING

    @property
    def required(self) -> bool:
        return self.default is MISSING


def fields_of(cls: type) -> tuple[Field, ...]:
    """Return the fields of an event class or nested dataclass, or say why it can't be described."""
    return _read(cls)


@cache
def _read(cls: type) -> tuple[Field, ...]:
    return _Reader(()).fields(cls)


class _Reader:
    """Reads annotations; `inside` are the classes being read, to notice one that holds itself."""

    def __init__(self, inside: tuple[type, ...]) -> None:
        self._inside = inside

    def fields(self, cls: type) -> tuple[Field, ...]:
        _require_frozen_dataclass(cls)
        if cls in self._inside:
            raise EventTypeError(f"{cls.__name__} holds itself", hint="Spark has no recursive types: use ids")
        try:
            hints = get_type_hints(cls, include_extras=True)
        except NameError as error:
            raise EventTypeError(
                f"{cls.__name__} has an annotation that can't be read: {error}",
                hint="declare the classes it names at the top of a module",
            ) from error
        inner = _Reader((*self._inside, cls))
        found = tuple(inner._field(cls, field, hints[field.name]) for field in dataclasses.fields(cls))
        if not found:
            raise EventTypeError(f"{cls.__name__} has no fields")
        return found

    def _field(self, cls: type, field: "dataclasses.Field[Any]", hint: Any) -> Field:
        where = f"{cls.__name__}.{field.name}"
        if field.name.startswith("_"):
            raise EventTypeError(f"{where} starts with an underscore", hint="schemas need plain names")
        return Field(field.name, self._kind(where, hint), _wire_default(field))

    def _kind(self, where: str, hint: Any) -> Kind:
        if get_origin(hint) is Annotated:
            base, *notes = get_args(hint)
            precision = next((note for note in notes if isinstance(note, Precision)), None)
            return Fixed(precision) if base is Decimal and precision else self._kind(where, base)
        if get_origin(hint) in (Union, types.UnionType):
            return self._optional(where, hint)
        if get_origin(hint) is list:
            return Many(self._kind(f"{where}[]", get_args(hint)[0]))
        if get_origin(hint) is dict:
            return self._mapped(where, hint)
        return self._plain(where, hint)

    def _optional(self, where: str, hint: Any) -> Kind:
        inner = [arg for arg in get_args(hint) if arg is not type(None)]
        if len(inner) != 1 or len(get_args(hint)) != 2:
            raise EventTypeError(f"{where} is {hint}", hint="of unions only `T | None` can be stored")
        return Maybe(self._kind(where, inner[0]))

    def _mapped(self, where: str, hint: Any) -> Kind:
        key, value = get_args(hint)
        if key is not str:
            raise EventTypeError(f"{where} is {hint}", hint="a dict's keys must be str")
        return Mapped(self._kind(f"{where}{{}}", value))

    def _plain(self, where: str, hint: Any) -> Kind:
        if hint in SCALARS:
            return Scalar(hint)
        if hint is Decimal:
            raise EventTypeError(
                f"{where} is a Decimal of unknown size",
                hint="write Annotated[Decimal, Precision(12, 2)]",
            )
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _choice(where, hint)
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            self.fields(hint)
            return Record(hint)
        raise EventTypeError(
            f"{where} is {getattr(hint, '__name__', hint)}",
            hint="use str, int, float, bool, bytes, Decimal, datetime, date, UUID, an Enum of str, "
            "`T | None`, list[T], dict[str, T] or a frozen dataclass",
        )


def _require_frozen_dataclass(cls: type) -> None:
    parameters = cls.__dict__.get("__dataclass_params__")
    if parameters is None or not parameters.frozen:
        raise EventTypeError(
            f"{cls.__name__} is not a frozen dataclass", hint="write @dataclass(frozen=True) above it"
        )
    if "__slots__" in cls.__dict__:
        raise EventTypeError(f"{cls.__name__} has slots", hint="declare it without slots=True")


def _choice(where: str, enum: type[Enum]) -> Choice:
    for member in enum:
        if not isinstance(member.value, str):
            raise EventTypeError(
                f"{where}: {enum.__name__}.{member.name} is {member.value!r}, expected a str"
            )
    return Choice(enum)


def _wire_default(field: "dataclasses.Field[Any]") -> Any:
    """A default that is made anew for each event (an id, a clock) is no default for one that was read."""
    if field.default_factory in (list, dict):
        return field.default_factory()
    return field.default
