"""The fields of an event class as they were read: coerced, checked, and filled where they are absent."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import NullType

from penstock.events.kinds import Choice, Field, Kind, Maybe, fields_of
from penstock.process.wire.coercion import Seen, coerced, field_fits, filled
from penstock.schemas import spark_schema

Note = Callable[[Field], str]


@dataclass(frozen=True)
class EventFields:
    """The columns that were read for a class; their coerced values are a struct in the column `name`."""

    cls: type
    name: str
    seen: Mapping[str, Seen]

    def coerced(self) -> Column:
        """The values as the types of their fields, null where they do not fit."""
        types = spark_schema(self.cls)
        return F.struct(
            *(
                coerced(field.kind, types[field.name].dataType, self.of(field)).alias(field.name)
                for field in fields_of(self.cls)
            )
        )

    def filled(self) -> Column:
        """The event: its coerced values, and defaults for those that are absent."""
        types, values = spark_schema(self.cls), F.col(self.name)
        return F.struct(
            *(
                filled(field, types[field.name].dataType, self.of(field), values[field.name]).alias(
                    field.name
                )
                for field in fields_of(self.cls)
            )
        )

    def faults(self, fault: Column, note: Note = lambda _: "") -> Column:
        """Add to the cases of a fault those of values that do not fit; `note` is put behind what is said."""
        types = spark_schema(self.cls)
        for field in fields_of(self.cls):
            good = field_fits(field, self.of(field), F.col(self.name)[field.name])
            wanted = _wanted(field.kind, types[field.name].dataType.simpleString())
            said = f"field {field.name!r} is missing or not {wanted}{note(field)}"
            fault = fault.when(~good, F.lit(said))
        return fault

    def of(self, field: Field) -> Seen:
        """What was read for a field; one that was not there is null."""
        return self.seen.get(field.name) or Seen(F.lit(None), NullType(), texts=False)


def _wanted(kind: Kind, type: str) -> str:
    """What a field takes: a type, or one of a few words."""
    inner = kind.inner if isinstance(kind, Maybe) else kind
    return (
        f"one of {', '.join(str(each.value) for each in inner.enum)}" if isinstance(inner, Choice) else type
    )
