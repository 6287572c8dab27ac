"""Upcasting: an event that was written long ago, brought step by step to today's shape."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import ConfigurationError, DecodeError

if TYPE_CHECKING:
    from pyspark.sql import Column

Values = dict[str, Any]
_WHOLE = r"^[+-]?[0-9]{1,18}$"
_REAL = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Native:
    """Columns by field name, and the condition under which a row could not be upcast."""

    columns: dict[str, "Column"]
    broken: tuple["Column", ...] = ()


class Step(Protocol):
    """One change of shape, in Python on values and, where it can be, in Spark on columns."""

    def apply(self, values: Values) -> Values: ...

    def compile(self, native: Native) -> Native: ...


@dataclass(frozen=True)
class Upcast:
    """Brings events of version `since` to the next version, by its steps in order."""

    since: int
    steps: tuple[Step, ...]

    def apply(self, values: Values) -> Values:
        for step in self.steps:
            values = step.apply(values)
        return values

    def compile(self, native: Native) -> Native:
        for step in self.steps:
            native = step.compile(native)
        return native


def upcast(since: int, *steps: Step) -> Upcast:
    """Say how events of version `since` become events of the version after it.

    >>> upcast(1, rename("name", to="customer"), default("currency", "EUR")).apply({"name": "ada"})
    {'customer': 'ada', 'currency': 'EUR'}
    """
    if since < 1 or not steps:
        raise ConfigurationError(
            f"upcast({since}, …) has {len(steps)} steps", hint="versions start at 1, and a step is needed"
        )
    return Upcast(since, steps)


def upcasts_from(version: int | None, upcasts: Sequence[Upcast]) -> tuple[Upcast, ...]:
    """Return the upcasts that an event of a version goes through, in order; none if nobody knows its version.

    A version that no upcast starts at needs none of its own: its events go through those of later ones.
    """
    ordered = sorted(upcasts, key=lambda each: each.since)
    versions = [each.since for each in ordered]
    if len(set(versions)) != len(versions):
        raise ConfigurationError(f"two upcasts start at one version: {versions}")
    return tuple(each for each in ordered if version is not None and each.since >= version)


@dataclass(frozen=True)
class Past:
    """What a field was in older versions: its `names`, the newest first, and its default before it came.

    `made` says that a step makes it of other fields; `since`, up from which version it has its name, where
    another field had it before.
    """

    names: tuple[str, ...] = ()
    defaults: tuple[Any, ...] = ()  # one, or none
    made: bool = False
    since: int | None = None


def past(field: str, upcasts: Sequence[Upcast]) -> Past:
    """Follow a field of the newest version back through the steps of upcasts.

    >>> past("payer", [upcast(1, default("name", "?")), upcast(2, rename("name", to="payer"))])
    Past(names=('name',), defaults=('?',), made=False, since=None)
    """
    found, name = Past(), field
    for each in sorted(upcasts, key=lambda upcast: -upcast.since):
        for step in reversed(each.steps):
            match step:
                case _Rename(old, new) if new == name:
                    found, name = replace(found, names=(*found.names, old)), old
                case _Default(other, value) if other == name:
                    found = replace(found, defaults=(value,))
                case _Split(_, into) if name in into:
                    return replace(found, made=True)
                case _Merge(_, into) if into == name:
                    return replace(found, made=True)
                case _Rename() | _Split() | _Merge() if name in _ended(step):
                    return replace(found, since=each.since + 1)
    return found


@dataclass(frozen=True)
class _Rename:
    old: str
    new: str

    def apply(self, values: Values) -> Values:
        return {self.new if name == self.old else name: value for name, value in values.items()}

    def compile(self, native: Native) -> Native:
        return Native(self.apply(native.columns), native.broken)


@dataclass(frozen=True)
class _Default:
    field: str
    value: Any

    def apply(self, values: Values) -> Values:
        return values if values.get(self.field) is not None else values | {self.field: self.value}

    def compile(self, native: Native) -> Native:
        from pyspark.sql import functions as F

        value = F.lit(self.value)
        column = native.columns.get(self.field)
        changed = value if column is None else F.coalesce(column, value)
        return Native(native.columns | {self.field: changed}, native.broken)


@dataclass(frozen=True)
class _Cast:
    field: str
    to: str
    pattern: str
    convert: Callable[[Any], Any]

    def apply(self, values: Values) -> Values:
        value = values.get(self.field)
        return values if value is None else values | {self.field: self._converted(value)}

    def _converted(self, value: Any) -> Any:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        inexact = isinstance(value, float) and self.to != "double"
        if inexact or not re.search(self.pattern, text):
            raise DecodeError(f"field {self.field!r} is {value!r}, which can't be cast to {self.to}")
        return self.convert(text)

    def compile(self, native: Native) -> Native:
        from pyspark.sql import functions as F

        column = native.columns.get(self.field)
        if column is None:
            return native
        text = column.cast("string")
        fits = text.rlike(self.pattern)
        if self.to != "double":  # a float has more than one spelling
            fits = fits & ~F.typeof(column).isin("double", "float")
        changed = F.when(fits, text.try_cast(self.to))
        broken = column.isNotNull() & changed.isNull()
        return Native(native.columns | {self.field: changed}, (*native.broken, broken))


@dataclass(frozen=True)
class _Split:
    field: str
    into: tuple[str, ...]
    on: str

    def apply(self, values: Values) -> Values:
        text = values.get(self.field)
        parts = [] if text is None else text.split(self.on, len(self.into) - 1)
        parts += [None] * (len(self.into) - len(parts))
        rest = {name: value for name, value in values.items() if name != self.field}
        return rest | dict(zip(self.into, parts, strict=True))

    def compile(self, native: Native) -> Native:
        from pyspark.sql import functions as F

        parts = F.split(native.columns[self.field], re.escape(self.on), len(self.into))
        rest = {name: column for name, column in native.columns.items() if name != self.field}
        return Native(
            rest | {name: F.get(parts, F.lit(place)) for place, name in enumerate(self.into)}, native.broken
        )


@dataclass(frozen=True)
class _Merge:
    fields: tuple[str, ...]
    into: str
    on: str

    def apply(self, values: Values) -> Values:
        present = [values[name] for name in self.fields if values.get(name) is not None]
        rest = {name: value for name, value in values.items() if name not in self.fields}
        return rest | {self.into: self.on.join(present)}

    def compile(self, native: Native) -> Native:
        from pyspark.sql import functions as F

        merged = F.concat_ws(self.on, *(native.columns[name] for name in self.fields))
        rest = {name: column for name, column in native.columns.items() if name not in self.fields}
        return Native(rest | {self.into: merged}, native.broken)


@dataclass(frozen=True)
class _Python:
    function: Callable[[Values], Values]

    def apply(self, values: Values) -> Values:
        return self.function(dict(values))

    def compile(self, native: Native) -> Native:  # noqa: ARG002
        name = getattr(self.function, "__name__", self.function)
        raise ConfigurationError(
            f"the upcaster {name!r} is Python, which Spark can't run as an expression",
            hint="say it with rename, default, cast, split and merge where it must run inside Spark",
        )


def _ended(step: _Rename | _Split | _Merge) -> tuple[str, ...]:
    """The fields that are not there any more after a step."""
    match step:
        case _Rename(old):
            return (old,)
        case _Split(field):
            return (field,)
        case _Merge(fields):
            return fields


def rename(old: str, *, to: str) -> Step:
    """A field has another name."""
    return _Rename(old, to)


def default(field: str, value: Any) -> Step:
    """A field that is missing or null has a value."""
    return _Default(field, value)


def cast(field: str, *, to: str) -> Step:
    """A field has another type: "string", "long", "double" or "decimal(12,2)"; nothing is rounded.

    What can't be cast exactly, a float to text or a decimal among it, makes a dead letter of the message.
    """
    if to == "string":
        return _Cast(field, to, "", str)
    if to == "long":
        return _Cast(field, to, _WHOLE, int)
    if to == "double":
        return _Cast(field, to, _REAL, float)
    found = _DECIMAL.fullmatch(to)
    if found is None:
        raise ConfigurationError(
            f"can't cast to {to!r}", hint='use "string", "long", "double" or "decimal(12,2)"'
        )
    digits, scale = int(found[1]), int(found[2])
    point = rf"(\.[0-9]{{1,{scale}}})?" if scale else ""
    return _Cast(field, to, rf"^[+-]?[0-9]{{1,{digits - scale}}}{point}$", Decimal)


def split(field: str, *, into: Sequence[str], on: str = " ") -> Step:
    """A text becomes several: the last one takes the rest, and those without a part are null."""
    if len(into) < 2 or not on:
        raise ConfigurationError(
            f"split into {tuple(into)} on {on!r}", hint="name two fields and a separator"
        )
    return _Split(field, tuple(into), on)


def merge(fields: Sequence[str], *, into: str, on: str = " ") -> Step:
    """Several texts become one; those that are null are left out."""
    return _Merge(tuple(fields), into, on)


def python(function: Callable[[Values], Values]) -> Step:
    """Any change, as a function from a dict to a dict; it can't run inside Spark's expressions."""
    return _Python(function)
