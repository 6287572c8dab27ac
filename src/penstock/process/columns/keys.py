"""Keys as frames compare them: equal where Spark finds them equal, and nowhere else."""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import FlowError

_READABLE = (BooleanType, DateType, DecimalType, IntegralType, StringType)  # each has a text of its own
_PLAIN = (*_READABLE, BinaryType, TimestampType, TimestampNTZType)


def is_plain(type: DataType) -> bool:
    """Whether frames compare keys of a type as Spark does; of floats they miss NaN, of structs some joins."""
    return isinstance(type, _PLAIN)


def is_readable(type: DataType) -> bool:
    """Whether a key's own text is a key as good."""
    return isinstance(type, _READABLE)


def comparable(key: Column, type: DataType) -> Column:
    """Return a key that frames can compare: itself, or a text that no other key has."""
    return key if is_plain(type) else _encoded(key, type)


def as_text(key: Column, type: DataType) -> Column:
    """Return a text that no other key of the type has."""
    return key.cast("string") if is_readable(type) else _encoded(key, type)


def _encoded(key: Column, type: DataType) -> Column:
    text = F.to_json(F.struct(_canonical(key, type).alias("key")), {"ignoreNullFields": "false"})
    return F.when(key.isNotNull(), text)


def _canonical(key: Column, type: DataType) -> Column:
    """Values that are equal look the same, in every time zone; different ones look different."""
    if isinstance(type, _READABLE):
        return key.cast("string")
    if isinstance(type, TimestampType):
        return F.unix_micros(key)
    if isinstance(type, TimestampNTZType):
        return key.cast("string")
    if isinstance(type, BinaryType):
        return F.hex(key)
    if isinstance(type, FractionalType):  # 0.0 and -0.0 are equal
        return F.when(key == 0, F.lit("0")).otherwise(key.cast("string"))
    if isinstance(type, ArrayType):
        element = type.elementType
        return F.transform(key, lambda each: _canonical(each, element))
    if isinstance(type, StructType):
        parts = (_canonical(key[field.name], field.dataType).alias(field.name) for field in type)
        return F.when(key.isNotNull(), F.struct(*parts))
    raise FlowError(f"a key can't be {type.simpleString()}", hint="use a struct, or a part of it")
