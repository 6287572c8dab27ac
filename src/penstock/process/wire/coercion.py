"""Coercion: the values of a message as the columns of an event class; null where one does not fit."""

from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from typing import Any
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructType,
    VariantType,
)

from penstock.events.kinds import Choice, Field, Kind, Many, Mapped, Maybe, Record, Scalar, fields_of
from penstock.process.wire import scalars
from penstock.schemas import spark_schema

_WIRE: dict[type, DataType] = {
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
}
_VARIANTS = {str: "STRING", int: "BIGINT", float: "BIGINT|DECIMAL|DOUBLE|FLOAT", bool: "BOOLEAN"}


@dataclass(frozen=True)
class Seen:
    """A column with the type it was read as; `texts` says whether times and numbers may be spelled out.

    With `epoch`, times may also be counted from 1970.
    """

    column: Column
    type: DataType
    texts: bool
    epoch: bool = False

    def of(self, column: Column, type: DataType) -> "Seen":
        return Seen(column, type, self.texts, self.epoch)

    @property
    def is_null(self) -> Column:
        """JSON's null in a variant is a value of its own: only a field that is absent is SQL's null."""
        if isinstance(self.type, VariantType):
            return self.column.isNull() | F.is_variant_null(self.column)
        return self.column.isNull()


def coerced(kind: Kind, target: DataType, seen: Seen) -> Column:
    """Return the value as the type of its field, or null where it does not fit."""
    match kind, target, seen.type:
        case Maybe(inner), _, _:
            return coerced(inner, target, seen)
        case Many(item), ArrayType(), ArrayType():
            return _list(item, target.elementType, seen, seen.type.elementType)
        case Mapped(value), MapType(), MapType():
            return _map(value, target.valueType, seen, seen.type.valueType)
        case Record(cls), _, StructType():
            return _record(cls, seen, seen.type)
        case _, _, VariantType():
            return coerced(kind, target, _unwrapped(kind, seen))
    return scalars.scalar(kind, target, seen.column, seen.type, texts=seen.texts, epoch=seen.epoch)


def fits(kind: Kind, seen: Seen, value: Column) -> Column:
    """Say whether a value fits its kind; `value` is what `coerced` made of it."""
    return value.isNotNull() | seen.is_null if isinstance(kind, Maybe) else value.isNotNull()


def takes(kind: Kind, target: DataType, seen: DataType) -> bool:
    """Say whether a column of some type can be a field of this kind; a struct needs the very same fields."""
    match kind, target, seen:
        case Maybe(), _, NullType():
            return True
        case Maybe(inner), _, _:
            return takes(inner, target, seen)
        case Many(item), ArrayType(), ArrayType():
            return takes(item, target.elementType, seen.elementType)
        case Mapped(value), MapType(), MapType():
            return seen.keyType == StringType() and takes(value, target.valueType, seen.valueType)
        case Record(cls), StructType(), StructType():
            same = set(target.names) == set(seen.names)
            return same and all(
                takes(each.kind, target[each.name].dataType, seen[each.name].dataType)
                for each in fields_of(cls)
            )
    return scalars.takes(kind, target, seen)


def field_fits(field: Field, seen: Seen, value: Column) -> Column:
    """Say whether a field's value fits; one that has a default may be absent."""
    good = fits(field.kind, seen, value)
    if not field.required:
        return good | seen.column.isNull()
    if isinstance(seen.type, VariantType | NullType):
        return good & seen.column.isNotNull()
    return good


def filled(field: Field, target: DataType, seen: Seen, value: Column) -> Column:
    """Return a field's value, or its default where it is absent."""
    if field.required or field.default is None:
        return value
    return F.when(seen.column.isNull(), literal(field.kind, target, field.default)).otherwise(value)


def literal(kind: Kind, target: DataType, value: Any) -> Column:
    """Return a default of a class as a column."""
    match kind, value:
        case _, None:
            return F.lit(None).cast(target)
        case Maybe(inner), _:
            return literal(inner, target, value)
        case Many(item), list() if isinstance(target, ArrayType):
            made = F.array(*(literal(item, target.elementType, each) for each in value))
        case Mapped(inner), dict() if isinstance(target, MapType):
            pairs = [(F.lit(key), literal(inner, target.valueType, each)) for key, each in value.items()]
            made = F.create_map(*(column for pair in pairs for column in pair))
        case Record(cls), _:
            types = spark_schema(cls)
            made = F.struct(
                *(
                    literal(each.kind, types[each.name].dataType, getattr(value, each.name)).alias(each.name)
                    for each in fields_of(cls)
                )
            )
        case Choice(), _:
            made = F.lit(value.value)
        case Scalar(python), _ if python in (UUID, datetime, date):
            made = F.lit(str(value))
        case _:
            made = F.lit(value)
    return made.cast(target)


def all_of(conditions: list[Column]) -> Column:
    """Return the conjunction of conditions."""
    return reduce(lambda left, right: left & right, conditions, F.lit(True))


def _list(item: Kind, target: DataType, seen: Seen, type: DataType) -> Column:
    if item == Scalar(str) and seen.texts and isinstance(type, StringType):
        return _texts(seen.column)

    def value(each: Column) -> Column:
        return coerced(item, target, seen.of(each, type))

    good = F.forall(seen.column, lambda each: fits(item, seen.of(each, type), value(each)))
    return F.when(good, F.transform(seen.column, value))


def _texts(column: Column) -> Column:
    """Texts are as they were read, if none is null; asked without a lambda, of which Spark compiles none."""
    null = F.array(F.lit(None).cast("string"))
    whole = (F.size(column) == 0) | (F.size(F.array_except(null, column)) == 1)
    return F.when(whole, column)


def _map(kind: Kind, target: DataType, seen: Seen, type: DataType) -> Column:
    def value(_: Column, each: Column) -> Column:
        return coerced(kind, target, seen.of(each, type))

    good = F.forall(
        F.map_values(seen.column), lambda each: fits(kind, seen.of(each, type), value(each, each))
    ) & F.forall(F.map_keys(seen.column), F.is_valid_utf8)
    return F.when(good, F.transform_values(seen.column, value))


def _record(cls: type, seen: Seen, type: StructType) -> Column:
    types = spark_schema(cls)
    good, values = [seen.column.isNotNull()], []
    for field in fields_of(cls):
        inner = _member(field.name, seen, type)
        value = coerced(field.kind, types[field.name].dataType, inner)
        good.append(field_fits(field, inner, value))
        values.append(filled(field, types[field.name].dataType, inner, value).alias(field.name))
    return F.when(all_of(good), F.struct(*values))


def _member(name: str, seen: Seen, type: StructType) -> Seen:
    if name not in type.names:
        return seen.of(F.lit(None), NullType())
    return seen.of(seen.column[name], type[name].dataType)


def wire_type(kind: Kind) -> DataType:
    """Return the type as which a field is read from JSON, to be coerced: what is spelled as text is text."""
    match kind:
        case Scalar(python):
            return _WIRE.get(python, StringType())
        case Maybe(inner):
            return wire_type(inner)
        case Many(item):
            return ArrayType(wire_type(item))
        case Mapped(value):
            return MapType(StringType(), wire_type(value))
        case Record(cls):
            return wire_schema(cls)
    return StringType()


def wire_schema(cls: type) -> StructType:
    """Return the type as which an event class is read from JSON."""
    made = StructType()
    for field in fields_of(cls):
        # Only a variant knows null from absent, which matters where null is a value but not the default.
        distinguished = isinstance(field.kind, Maybe) and field.default is not None
        made.add(field.name, VariantType() if distinguished else wire_type(field.kind))
    return made


def _unwrapped(kind: Kind, seen: Seen) -> Seen:
    """Take a value out of its variant, which would also make a number of a text, and the other way round."""
    wire = wire_type(kind)
    value = F.try_variant_get(seen.column, "$", wire.simpleString())
    if isinstance(kind, Scalar) and kind.python in _VARIANTS:
        value = F.when(F.schema_of_variant(seen.column).rlike(_VARIANTS[kind.python]), value)
    return seen.of(value, wire)
