"""The Spark columns of an event class."""

from datetime import date, datetime
from uuid import UUID

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from penstock.events.kinds import Choice, Fixed, Kind, Many, Mapped, Maybe, Record, Scalar, fields_of

_SCALARS: dict[type, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
    bytes: BinaryType(),
    datetime: TimestampType(),
    date: DateType(),
    UUID: StringType(),
}


def spark_schema(cls: type) -> StructType:
    """Return the Spark type of an event class.

    >>> from dataclasses import dataclass
    >>> from datetime import datetime
    >>> from penstock.events import Event
    >>> @dataclass(frozen=True)
    ... class Click(Event):
    ...     at: datetime
    >>> spark_schema(Click).simpleString()
    'struct<id:string,at:timestamp>'
    """
    return StructType(
        [
            StructField(field.name, _type(field.kind), nullable=isinstance(field.kind, Maybe))
            for field in fields_of(cls)
        ]
    )


def _type(kind: Kind) -> DataType:
    match kind:
        case Scalar(python):
            return _SCALARS[python]
        case Fixed(precision):
            return DecimalType(precision.digits, precision.scale)
        case Choice():
            return StringType()
        case Maybe(inner):
            return _type(inner)
        case Many(item):
            return ArrayType(_type(item), containsNull=isinstance(item, Maybe))
        case Mapped(value):
            return MapType(StringType(), _type(value), valueContainsNull=isinstance(value, Maybe))
        case Record(cls):
            return spark_schema(cls)
