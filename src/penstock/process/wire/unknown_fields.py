"""Unknown fields: names in a JSON text that the event class does not have, for topics that refuse them.

Spark's parser passes over them, so that every object is asked for its names beside it, level by level.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from penstock.events.kinds import Kind, Many, Mapped, Maybe, Record, fields_of


def unknown_field(cls: type, text: Column) -> Column:
    """Return the name of a field that the class, or one of those in it, does not have; null if there is none.

    What is no JSON, or no object where one is expected, has none: that is for others to see.
    """
    fields = fields_of(cls)
    known = F.array(*(F.lit(field.name) for field in fields))
    own = F.get(F.array_except(F.json_object_keys(text), known), F.lit(0))
    nested = {field.name: field.kind for field in fields if _holds_record(field.kind)}
    if not nested:
        return own
    parts = F.from_json(text, StructType([StructField(name, _texts(kind)) for name, kind in nested.items()]))
    return F.coalesce(own, *(_within(kind, parts[name]) for name, kind in nested.items()))


def _within(kind: Kind, held: Column) -> Column:
    """The same for a value whose records are texts still."""
    match kind:
        case Maybe(inner):
            return _within(inner, held)
        case Many(inner):
            return _first(held, inner)
        case Mapped(inner):
            return _first(F.map_values(held), inner)
        case Record(cls):
            return unknown_field(cls, held)
    return F.lit(None).cast("string")


def _first(values: Column, kind: Kind) -> Column:
    found = F.transform(values, lambda each: _within(kind, each))
    return F.get(F.filter(found, lambda each: each.isNotNull()), F.lit(0))


def _texts(kind: Kind) -> DataType:
    """The type as which a value is parsed so that its records stay the JSON that they are."""
    match kind:
        case Maybe(inner):
            return _texts(inner)
        case Many(inner):
            return ArrayType(_texts(inner))
        case Mapped(inner):
            return MapType(StringType(), _texts(inner))
    return StringType()


def _holds_record(kind: Kind) -> bool:
    match kind:
        case Maybe(inner) | Many(inner) | Mapped(inner):
            return _holds_record(inner)
    return isinstance(kind, Record)
