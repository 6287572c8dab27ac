"""Events of a store as Spark columns: a struct for each event class, upcast and typed inside Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from penstock.errors import ConfigurationError
from penstock.events import fields_of
from penstock.process.columns.data_error import data_error
from penstock.process.wire.coercion import Seen, wire_type
from penstock.process.wire.event_fields import EventFields
from penstock.schemas import Upcast
from penstock.schemas.upcasting import Native, upcasts_from
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.domain import DomainEvent

PART = "part"
_PARSED = "_parsed"


def as_columns(aggregate: Aggregate[Any], *classes: type[DomainEvent]) -> Callable[[DataFrame], DataFrame]:
    """Add a column for each event class, named as the class: a struct, null where the row is of another one.

        rows.transform(as_columns(account, Deposited, Withdrawn)).select("stream", "Deposited.amount")

    Rows are a category's records, with `type`, `schema_version` and `data`. Old events are upcast, a row of a
    type that was split is as many rows, numbered by `part`. A record of a type that the aggregate does not
    declare, or that can't be decoded, stops the query: the history is wrong, or the code.
    """
    wanted = classes or aggregate.events
    strangers = set(wanted) - set(aggregate.events)
    if strangers:
        raise ConfigurationError(
            f"{min(each.__name__ for each in strangers)} is not an event of {aggregate.category!r}"
        )

    for cls in wanted:
        _refuse_ciphertext(cls)

    def transform(rows: DataFrame) -> DataFrame:
        rows = _with_parts(rows, aggregate).withColumn("type", _declared(aggregate))
        for cls in wanted:
            rows = _with_class(rows, cls, _shapes(aggregate, cls))
        return rows

    return transform


@dataclass(frozen=True)
class _Shape:
    """Rows in which a class's event has one shape: which ones, and how it is brought to today's."""

    applies: Column
    upcasts: tuple[Upcast, ...]


def _shapes(aggregate: Aggregate[Any], cls: type[DomainEvent]) -> list[_Shape]:
    named = F.col("type").isin(cls.event_type, *cls.formerly)
    found = [
        _Shape(named & (F.col("schema_version") == version), upcasts_from(version, cls.upcasts))
        for version in range(1, cls.schema_version + 1)
    ]
    for type, parts in aggregate.split.items():
        for place, part in enumerate(parts):
            if part.cls is cls:
                applies = (F.col("type") == type) & (F.col(PART) == place)
                found.append(_Shape(applies, (Upcast(1, part.steps),) if part.steps else ()))
    return found


def _with_parts(rows: DataFrame, aggregate: Aggregate[Any]) -> DataFrame:
    """A row for each part of an event whose type was split."""
    if not aggregate.split:
        return rows.withColumn(PART, F.lit(0))
    numbers = F.when(F.lit(False), F.array(F.lit(0)))
    for type, parts in aggregate.split.items():
        numbers = numbers.when(F.col("type") == type, F.array(*(F.lit(each) for each in range(len(parts)))))
    return rows.withColumn(PART, F.explode(numbers.otherwise(F.array(F.lit(0)))))


def _declared(aggregate: Aggregate[Any]) -> Column:
    known = [name for cls in aggregate.events for name in (cls.event_type, *cls.formerly)]
    known += [*aggregate.split, *aggregate.removed]
    return F.when(F.col("type").isin(known), F.col("type")).otherwise(
        data_error(
            F.concat(_place("is a "), "type", F.lit(", which nobody declares; add it to events= or removed="))
        ).cast("string")
    )


def _with_class(rows: DataFrame, cls: type[DomainEvent], shapes: Sequence[_Shape]) -> DataFrame:
    if not fields(cls):
        applies = reduce(Column.__or__, (each.applies for each in shapes))
        unknown = F.when(
            _is_unknown(cls), data_error(_place(f"is a {cls.__name__} of another schema version"))
        )
        return rows.withColumn(cls.__name__, unknown.when(applies, F.struct(F.lit(True).alias("happened"))))
    event = F.when(_is_unknown(cls), data_error(_place(f"is a {cls.__name__} of another schema version")))
    names = rows.columns
    for place, shape in enumerate(shapes):
        name = f"{_PARSED}_{place}"
        parsed = F.from_json(F.col("data"), _schema(cls, shape.upcasts))
        rows = rows.withColumn(name, F.when(shape.applies, parsed))
        native, read = _upcast(rows, name, shape), f"{name}_coerced"
        types = rows.select(*(column.alias(each) for each, column in native.columns.items())).schema
        seen = {
            each: Seen(column, types[each].dataType, texts=True) for each, column in native.columns.items()
        }
        found = EventFields(cls, read, seen)
        rows = rows.withColumn(read, F.when(F.col(name).isNotNull(), found.coerced()))
        event = event.when(shape.applies, _checked(cls, found, native, F.col(name)))
    return rows.withColumn(cls.__name__, event).select(*names, cls.__name__)


def _upcast(rows: DataFrame, name: str, shape: _Shape) -> Native:
    type = rows.schema[name].dataType
    native = Native({field: F.col(name)[field] for field in type.names if isinstance(type, StructType)})  # type: ignore[attr-defined]
    for each in shape.upcasts:
        native = each.compile(native)
    return native


def _schema(cls: type[DomainEvent], upcasts: Sequence[Upcast]) -> StructType:
    """What is parsed: the fields of today and those they are made of; what is split or cast is text."""
    found: dict[str, DataType] = {field.name: wire_type(field.kind) for field in fields_of(cls)}
    for step in reversed([step for upcast in upcasts for step in upcast.steps]):
        held = vars(step)
        if "old" in held:  # renamed
            found[held["old"]] = found.get(held["new"], StringType())
        elif "into" in held:  # split, or merged
            found |= dict.fromkeys(held.get("fields") or (held["field"],), StringType())
        elif "pattern" in held:  # cast
            found[held["field"]] = StringType()
    return StructType([StructField(name, type) for name, type in found.items()])


def _checked(cls: type[DomainEvent], found: EventFields, native: Native, parsed: Column) -> Column:
    broken = reduce(Column.__or__, (F.coalesce(each, F.lit(False)) for each in native.broken), F.lit(False))
    fault = found.faults(
        F.when(parsed.isNull(), F.lit("it is not JSON")).when(broken, F.lit("it can't be upcast"))
    )
    where = _place(f"is no {cls.__name__}: ")
    return F.when(fault.isNotNull(), data_error(F.concat(where, fault))).otherwise(found.filled())


def _is_unknown(cls: type[DomainEvent]) -> Column:
    """Whether a row is of the class, and of a schema version that it does not know: newer code wrote it."""
    named = F.col("type").isin(cls.event_type, *cls.formerly)
    known = F.col("schema_version").between(1, cls.schema_version)
    return named & ~F.coalesce(known, F.lit(False))


def _place(what: str) -> Column:
    return F.format_string(f"version %d of %s %s {what}", "version", "category", "stream")


def _refuse_ciphertext(cls: type[DomainEvent]) -> None:
    """What is personal is encrypted here: it can be renamed, and not taken apart."""
    for step in (step for upcast in cls.upcasts for step in upcast.steps):
        held = vars(step)
        made = held.get("into", ())
        touched = {held.get("field"), *held.get("fields", ()), *((made,) if isinstance(made, str) else made)}
        if ("into" in held or "pattern" in held) and touched & {*cls.personal}:
            raise ConfigurationError(
                f"an upcast of {cls.__name__} takes personal fields apart, which are encrypted in Spark",
                hint="rename them only, or leave the class out: as_columns(aggregate, Other, …)",
            )
