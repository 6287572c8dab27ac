"""The shapes that events of a class have had, and how few readings of their data are enough for all."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StringType, StructField, StructType

from penstock.events import fields_of
from penstock.process.wire.coercion import wire_type
from penstock.schemas import Upcast
from penstock.schemas.upcasting import upcasts_from
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.domain import DomainEvent

PART, SHAPE = "part", "_shape"
_PARSED = "_parsed"


@dataclass(frozen=True)
class Shape:
    """Rows in which a class's event has one shape: which ones, and how it is brought to today's."""

    cls: type[DomainEvent]
    applies: Column
    upcasts: tuple[Upcast, ...]

    @property
    def schema(self) -> dict[str, DataType]:
        """What is parsed: the fields of today and those they are made of; what is split or cast is text."""
        found: dict[str, DataType] = {}
        if fields(self.cls):
            found = {field.name: wire_type(field.kind) for field in fields_of(self.cls)}
        for step in reversed([step for upcast in self.upcasts for step in upcast.steps]):
            held = vars(step)
            if "old" in held:  # renamed
                found[held["old"]] = found.get(held["new"], StringType())
            elif "into" in held:  # split, or merged
                found |= dict.fromkeys(held.get("fields") or (held["field"],), StringType())
            elif "pattern" in held:  # cast
                found[held["field"]] = StringType()
        return found


def shapes_of(aggregate: Aggregate[Any], cls: type[DomainEvent]) -> list[Shape]:
    """Return the shapes that the events of a class have: one for each version, and where it was a part."""
    named = F.col("type").isin(cls.event_type, *cls.formerly)
    found = [
        Shape(cls, named & (F.col("schema_version") == version), upcasts_from(version, cls.upcasts))
        for version in range(1, cls.schema_version + 1)
    ]
    for type, parts in aggregate.split.items():
        for place, part in enumerate(parts):
            if part.cls is cls:
                applies = (F.col("type") == type) & (F.col(PART) == place)
                found.append(Shape(cls, applies, (Upcast(1, part.steps),) if part.steps else ()))
    return found


@dataclass(frozen=True)
class Parse:
    """One reading of the data, for all shapes whose fields of one name are of one type."""

    name: str
    places: list[int]
    types: dict[str, DataType]

    def column(self, data: Column) -> Column:
        """What is read, where a row has one of the shapes."""
        schema = StructType([StructField(name, type) for name, type in self.types.items()])
        return F.when(F.col(SHAPE).isin(self.places), F.from_json(data, schema)).alias(self.name)


def parses_of(shapes: Sequence[Shape]) -> list[Parse]:
    """As few readings as can be: a plan with one for each class is long in the making."""
    found = list[Parse]()
    for place, shape in enumerate(shapes):
        if not (wanted := shape.schema):
            continue
        for each in found:
            if all(each.types.get(name, type) == type for name, type in wanted.items()):
                each.types.update(wanted)
                each.places.append(place)
                break
        else:
            found.append(Parse(f"{_PARSED}_{len(found)}", [place], wanted))
    return found
