"""State that was kept in an older shape, brought to the present one when it is read; no Spark."""

import base64
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal

import polars as pl
from polars.datatypes import DataTypeClass

from penstock.documents import Json
from penstock.errors import FlowError
from penstock.process.columns.lineage import NOTHING, Lineage

Type = pl.DataType | DataTypeClass
Types = Mapping[str, Type]  # of Polars, by the names of columns or fields


def migrated(kept: pl.DataFrame, like: pl.DataFrame, lineage: Lineage) -> pl.DataFrame:
    """Return rows of state in the columns and types of `like`.

    A column or a struct's field is found under its name or a former one. One that is missing has its default,
    or null where none is declared; one that is no more is left out.
    """
    if kept.schema == like.schema:
        return kept
    columns = {name: pl.col(name) for name in kept.columns}
    try:
        return kept.select(_fields(columns, kept.schema, like.schema, lineage))
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise FlowError(
            f"state can't be brought to its new shape: {reason}", hint="undo the change"
        ) from error


def renamed(kept: pl.DataFrame, lineage: Lineage) -> pl.DataFrame:
    """Return rows of state whose columns have today's names."""
    found = _places(lineage.fields, lineage, kept.schema)
    return kept.rename({there: name for name, there in found.items() if there is not None})


def _fields(
    columns: Mapping[str, pl.Expr], before: Types, after: Types, lineage: Lineage
) -> Iterable[pl.Expr]:
    for name, there in _places(after, lineage, before).items():
        own = lineage.fields.get(name)
        if there is None:
            found = _literal((own or NOTHING).default, after[name])
        else:  # what the platform puts around a value, as its place in the log, has no lineage of its own
            found = _brought(columns[there], before[there], after[name], own or lineage)
        yield found.alias(name)


def _places(names: Iterable[str], lineage: Lineage, before: Types) -> dict[str, str | None]:
    """Under which name each field was kept, or None; a name may have passed to another field."""
    own = {name: lineage.fields.get(name, NOTHING) for name in names}
    found = {
        name: next((each for each in (name, *past.names) if each in before), None)
        for name, past in own.items()
        if past.since is None
    }
    reused = {name: name if name in before and name not in found.values() else None for name in own}
    return {name: found[name] if name in found else reused[name] for name in own}


def _brought(column: pl.Expr, before: Type, after: Type, lineage: Lineage) -> pl.Expr:
    if before == after:
        return column
    if isinstance(before, pl.Struct) and isinstance(after, pl.Struct):
        columns = {each.name: column.struct.field(each.name) for each in before.fields}
        fields = _fields(columns, _types(before), _types(after), lineage)
        return pl.when(column.is_not_null()).then(pl.struct(*fields))
    if isinstance(before, pl.List) and isinstance(after, pl.List):
        return column.list.eval(_brought(pl.element(), before.inner, after.inner, lineage))
    return column.cast(after)


def _literal(value: Json, type: Type) -> pl.Expr:
    if value is None:
        return pl.lit(None, dtype=type)
    return pl.lit(pl.Series([_valued(value, type)], dtype=type)).first()


def _valued(value: Json, type: Type) -> Json:
    """A default that JSON has spelled, as Polars takes it."""
    if value is None:
        return None
    if isinstance(value, dict) and isinstance(type, pl.List) and isinstance(type.inner, pl.Struct):
        key, held = _types(type.inner)  # of a map, as Arrow has it
        return [{key: name, held: _valued(each, _types(type.inner)[held])} for name, each in value.items()]
    if isinstance(type, pl.List):
        return [_valued(each, type.inner) for each in value]
    if isinstance(type, pl.Struct):
        return {name: _valued(value.get(name), each) for name, each in _types(type).items()}
    return next((convert(value) for kind, convert in _SPELLED.items() if type == kind), value)


_SPELLED: dict[DataTypeClass, Callable[[Json], object]] = {
    pl.Datetime: datetime.fromisoformat,
    pl.Date: date.fromisoformat,
    pl.Decimal: lambda value: Decimal(str(value)),
    pl.Binary: base64.b64decode,
}


def _types(struct: pl.Struct) -> dict[str, Type]:
    return {each.name: each.dtype for each in struct.fields}
