"""Values as texts: how Spark writes each type for Redis so that nothing is lost, and reads it back."""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import TargetError
from penstock.process.wire.messages import EXACT_JSON

NESTED = (ArrayType, MapType, StructType)
INTEGERS = (ByteType, ShortType, IntegerType, LongType)
NUMBERS = (*INTEGERS, FloatType, DoubleType, DecimalType)
_TIMES = (TimestampType, TimestampNTZType)
_PLAIN = (StringType, BooleanType, DateType, *NUMBERS)
_WRAPPED = len('{"v":"'), len('{"v":""}')  # before a time in JSON, and in all


def text_of(column: Column, type: DataType) -> Column:
    """Return a column as the bytes that Redis gets: null where it is null."""
    if isinstance(type, BinaryType):
        return column
    return _text(column, type).cast("binary")


def value_of(held: Column, type: DataType) -> Column:
    """Return what `text_of` has written as it was; what does not fit its type is null."""
    if isinstance(type, BinaryType):
        return held
    text = held.cast("string")
    if isinstance(type, NESTED):
        return F.from_json(text, type, EXACT_JSON)
    return text if isinstance(type, StringType) else text.try_cast(type)


def check_type(name: str, type: DataType) -> None:
    """Refuse a column that has no text from which it could be read back."""
    wrong = _unwritable(type)
    if wrong is not None:
        raise TargetError(
            f"column {name!r} is of type {type.simpleString()}, and {wrong.simpleString()} has no text",
            hint="cast it in the flow; maps need keys of type string",
        )


def _text(column: Column, type: DataType) -> Column:
    if isinstance(type, _TIMES):
        before, around = _WRAPPED
        json = F.to_json(F.struct(column.alias("v")), EXACT_JSON)
        return F.when(column.isNotNull(), F.substring(json, before + 1, F.length(json) - around))
    if isinstance(type, NESTED):
        return F.to_json(column.cast(_exact(type)), EXACT_JSON)
    return column.cast("string")


def _exact(type: DataType) -> DataType:
    """The same structure with decimals as texts: a number of JSON is a float to most of its readers."""
    match type:
        case DecimalType():
            return StringType()
        case ArrayType():
            return ArrayType(_exact(type.elementType), type.containsNull)
        case MapType():
            return MapType(_exact(type.keyType), _exact(type.valueType), type.valueContainsNull)
        case StructType():
            return StructType([StructField(f.name, _exact(f.dataType), f.nullable) for f in type])
    return type


def _unwritable(type: DataType) -> DataType | None:
    match type:
        case ArrayType():
            return _unwritable(type.elementType)
        case MapType():
            return _unwritable(type.valueType) if isinstance(type.keyType, StringType) else type
        case StructType():
            return next(filter(None, (_unwritable(field.dataType) for field in type)), None)
    return None if isinstance(type, (*_PLAIN, *_TIMES, BinaryType, NullType)) else type
