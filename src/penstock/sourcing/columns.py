"""Events of a store as Spark columns: a struct for each event class, upcast and typed inside Spark."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import ConfigurationError
from penstock.process.columns.data_error import data_error
from penstock.process.wire.coercion import Seen
from penstock.process.wire.event_fields import EventFields
from penstock.schemas.upcasting import Native
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.domain import DomainEvent
from penstock.sourcing.event_shapes import PART, SHAPE, Parse, Shape, parses_of, shapes_of


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
        shapes = [shape for cls in wanted for shape in shapes_of(aggregate, cls)]
        parses = parses_of(shapes)
        names = [*dict.fromkeys((*rows.columns, PART))]
        rows = _with_parts(rows, aggregate).withColumn("type", _declared(aggregate))
        rows = rows.withColumn(SHAPE, _number(wanted, shapes))
        rows = rows.select("*", *(each.column(F.col("data")) for each in parses))
        drafts = [_draft(rows, place, shape, parses) for place, shape in enumerate(shapes)]
        rows = rows.select("*", *(each.coerced() for each in drafts if each.fields is not None))
        return rows.select(*names, *(_event(cls, drafts).alias(cls.__name__) for cls in wanted))

    return transform


def _number(wanted: Sequence[type[DomainEvent]], shapes: Sequence[Shape]) -> Column:
    """The place of a row's shape; null where it is of no class that is wanted."""
    found = F.when(F.lit(False), F.lit(0))
    for cls in wanted:
        unknown = data_error(_place(f"is a {cls.__name__} of another schema version"))
        found = found.when(_is_unknown(cls), unknown.cast("int"))
    for place, shape in enumerate(shapes):
        found = found.when(shape.applies, F.lit(place))
    return found


@dataclass(frozen=True)
class _Draft:
    """A shape's values as they were parsed and upcast, and why they could not be; a class may have none."""

    cls: type[DomainEvent]
    applies: Column
    parsed: Column | None = None
    native: Native | None = None
    fields: EventFields | None = None

    def coerced(self) -> Column:
        assert self.fields is not None  # noqa: S101
        assert self.parsed is not None  # noqa: S101
        value = F.when(self.applies & self.parsed.isNotNull(), self.fields.coerced())
        return value.alias(self.fields.name)

    def event(self) -> Column:
        """The event, or what stops the query."""
        if self.fields is None or self.native is None or self.parsed is None:
            return F.struct(F.lit(True).alias("happened"))
        broken = reduce(
            Column.__or__, (F.coalesce(each, F.lit(False)) for each in self.native.broken), F.lit(False)
        )
        not_json = F.when(self.parsed.isNull(), F.lit("it is not JSON"))
        fault = self.fields.faults(not_json.when(broken, F.lit("it can't be upcast")))
        where = _place(f"is no {self.cls.__name__}: ")
        error = data_error(F.concat(where, fault))
        return F.when(fault.isNotNull(), error).otherwise(self.fields.filled())


def _draft(rows: DataFrame, place: int, shape: Shape, parses: Sequence[Parse]) -> _Draft:
    applies = F.col(SHAPE) == place
    parse = next((each for each in parses if place in each.places), None)
    if parse is None:
        return _Draft(shape.cls, applies)
    parsed = F.col(parse.name)
    native = Native({name: parsed[name] for name in shape.schema})
    for each in shape.upcasts:
        native = each.compile(native)
    types = rows.select(*(column.alias(name) for name, column in native.columns.items())).schema
    seen = {name: Seen(column, types[name].dataType, texts=True) for name, column in native.columns.items()}
    return _Draft(shape.cls, applies, parsed, native, EventFields(shape.cls, f"_coerced_{place}", seen))


def _event(cls: type[DomainEvent], drafts: Sequence[_Draft]) -> Column:
    found = F.when(F.lit(False), F.lit(None))
    for each in drafts:
        if each.cls is cls:
            found = found.when(each.applies, each.event())
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
