"""Columns by their names: keys, times and results, checked when a flow is planned.

A name is a column's own, with or without a dot; where there is none of that name, it is a field's path.
"""

from collections.abc import Collection, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, TimestampType, VariantType

from penstock.errors import FlowError
from penstock.process.columns.names import ORDER, TIME
from penstock.process.columns.refusals import refuse_missing

# What operators call their own columns while they work.
_OWN = frozenset(
    {
        *ORDER,
        TIME,
        "_tick",
        "_bucket",
        "_event",
        "_pane",
        "_old",
        "_group",
        "_told",  # as checkpoints have it
        "_changed",
        "_waited",
        "_row",
    }
    | {"_session", "_start", "_new", "_came", "_key", "_seen", "_window", "_best", "_place"}
)


def quoted(name: str) -> Column:
    """Return the column of exactly this name."""
    return F.col("`" + name.replace("`", "``") + "`")


def named(rows: DataFrame, name: str) -> Column:
    """Return the column of a name, or else the field of a path."""
    return quoted(name) if name in rows.columns else F.col(name)


def type_of(rows: DataFrame, name: str) -> DataType:
    """Return the type of a column or a field; rows without it are refused."""
    refuse_missing(rows, [name if name in rows.columns else name.split(".")[0]], "the stream")
    return rows.select(named(rows, name)).schema[0].dataType


def keys_of(by: str | Sequence[str], taken: Collection[str], what: str, *, least: int = 0) -> tuple[str, ...]:
    """Return the columns of a key; none may be called like what results have besides."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if len(names) < least:
        raise FlowError(f"{what} has no key", hint='name its columns: by="card" or by=("user", "device")')
    if len(set(names)) < len(names):
        raise FlowError(f"the key {', '.join(names)} names a column twice")
    refuse_taken(names, taken, "key")
    return names


def refuse_taken(names: Collection[str], taken: Collection[str], what: str) -> None:
    """Refuse names that results have already, or that are used on the way to them."""
    for name in names:
        if name in taken:
            raise FlowError(f"the {what} {name!r} is a column of every result", hint="name it otherwise")
        if name in _OWN:
            raise FlowError(f"the {what} {name!r} has a name of Penstock's own", hint="name it otherwise")


def refuse_keys(rows: DataFrame, by: Sequence[str]) -> None:
    """Refuse rows without the columns of a key, and keys that can't be compared."""
    for name in by:
        if name not in rows.columns and name.split(".")[0] in rows.columns:
            hint = f"make it one: withColumn('{name.replace('.', '_')}', F.col('{name}'))"
            raise FlowError(f"the key {name!r} is no column, but a field of one", hint=hint)
        kind = type_of(rows, name)
        if isinstance(kind, MapType | VariantType):
            raise FlowError(f"the key {name!r} is {kind.simpleString()}", hint="use a part of it")


def refuse_own(rows: DataFrame) -> None:
    """Refuse events with a column that the watermark would replace."""
    if TIME in rows.columns:
        raise FlowError(f"events have a column {TIME!r}, which the watermark uses", hint="rename it")


def event_time(rows: DataFrame, name: str) -> Column:
    """Return the column of the event time, which has to be a timestamp."""
    kind = type_of(rows, name)
    if not isinstance(kind, TimestampType):
        hint = f"cast it before: withColumn({name!r}, F.to_timestamp({name!r}))"
        raise FlowError(f"the time {name!r} is {kind.simpleString()}, expected a timestamp", hint=hint)
    return named(rows, name)


def checked_buckets(buckets: int) -> int:
    """Return how many buckets keys are divided among."""
    if buckets < 1:
        raise FlowError(f"keys in {buckets} buckets, expected at least 1")
    return buckets
