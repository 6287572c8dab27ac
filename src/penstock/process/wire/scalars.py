"""Scalars: one value that was read, as the type of its field; null where it does not fit."""

from collections.abc import Callable, Mapping
from datetime import date, datetime
from uuid import UUID

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
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
    ShortType,
    StringType,
    TimestampType,
    VarcharType,
)

from penstock.events.kinds import Choice, Fixed, Kind, Scalar

Rule = Callable[[Column], Column]
_UTC = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
_INSTANT = _UTC.replace("T", "[Tt ]").replace("{1,6}", "+").replace("Z", "([Zz]|[+-][0-9]{2}:?[0-9]{2})")
_DATE = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_BASE64 = r"^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
_UUID = r"(?i)^([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})$"
_SCIENTIFIC = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]{1,3}$"
_COUNT = r"^-?[0-9]{1,19}$"
_DAYS = ("0001-01-01", "9999-12-31")  # what Python can hold
_INSTANTS = (f"{_DAYS[0]}T00:00:00Z", f"{_DAYS[1]}T23:59:59.999999Z")


def scalar(
    kind: Kind, target: DataType, column: Column, seen: DataType, *, texts: bool, epoch: bool = False
) -> Column:
    """Return a value as the type of its field, or null; `texts` says if it may be spelled out, as in JSON.

    With `epoch`, a text may also be how many microseconds or days a time or date is from 1970.
    """
    rule = _rules(kind, target, texts, epoch).get(type(seen))
    return F.lit(None).cast(target) if rule is None else rule(column)


def takes(kind: Kind, target: DataType, seen: DataType) -> bool:
    """Say whether every value of a column's type has a place in the field, if it is a value of the field."""
    if isinstance(target, DecimalType) and isinstance(seen, DecimalType):
        whole = target.precision - target.scale >= seen.precision - seen.scale
        return whole and target.scale >= seen.scale
    return type(seen) in _rules(kind, target, texts=False)


def _rules(kind: Kind, target: DataType, texts: bool, epoch: bool = False) -> Mapping[type[DataType], Rule]:
    rules: dict[type[DataType], Rule] = {}
    match kind:
        case Fixed():
            rules[DecimalType] = _exactly(target)
            if texts and isinstance(target, DecimalType):
                rules[StringType] = _decimal(target)
        case Choice(enum):
            values = [member.value for member in enum]
            rules[StringType] = lambda text: F.when(text.isin(values), text)
        case Scalar(python):
            rules.update(_TYPED[python])
            if texts and python in _SPELLED:
                rules[StringType] = (_SINCE_EPOCH if epoch else _SPELLED)[python]
    return rules


def _same(column: Column) -> Column:
    return column


def _long(column: Column) -> Column:
    return column.cast("long")


def _text(column: Column) -> Column:
    return F.when(F.is_valid_utf8(column), column)


def _real(column: Column) -> Column:
    return F.when(F.abs(column) < float("inf"), column.cast("double"))


def _instant(column: Column) -> Column:
    return F.when(column.between(*(F.lit(each).cast("timestamp") for each in _INSTANTS)), column)


def _day(column: Column) -> Column:
    return F.when(column.between(*(F.lit(each).cast("date") for each in _DAYS)), column)


def _uuid(column: Column) -> Column:
    whole = F.length(column) == 36
    dashed = F.when(whole, column).otherwise(F.regexp_replace(column, _UUID, "$1-$3-$4-$5-$6"))
    return F.when(column.rlike(_UUID), F.lower(dashed))


def _exactly(target: DataType) -> Rule:
    return lambda column: F.when(column == column.try_cast(target), column.try_cast(target))


def _decimal(target: DecimalType) -> Rule:
    """Spark rounds what has too many digits: look at the spelling first."""
    plain = rf"^[+-]?([0-9]+(\.[0-9]{{0,{target.scale}}}0*)?|\.(?=[0-9])[0-9]{{0,{target.scale}}}0*)$"

    def read(text: Column) -> Column:
        fraction = F.length(F.regexp_extract(text, r"\.([0-9]*?)0*[eE]", 1))
        exponent = F.regexp_extract(text, "[eE](.*)$", 1).try_cast("int")
        exact = text.rlike(_SCIENTIFIC) & (fraction - exponent <= target.scale)
        return F.when(text.rlike(plain) | exact, text.try_cast(target))

    return read


def _instant_text(text: Column) -> Column:
    """Read a time; what is finer than microseconds is rounded, as Python's codec does."""
    time = F.upper(text).try_cast("timestamp")
    up = text.rlike(r"\.[0-9]{6}[5-9]")
    rounded = F.when(up, F.timestamp_micros(F.unix_micros(time) + 1)).otherwise(time)
    usual = text.rlike(_UTC)  # as our own codec writes it: this is on the path of every event
    return F.when(usual, text.try_cast("timestamp")).when(text.rlike(_INSTANT), rounded)


def _day_text(text: Column) -> Column:
    return F.when(text.rlike(_DATE), text.try_cast("date"))


def _instant_or_count(text: Column) -> Column:
    counted = _instant(F.timestamp_micros(text.try_cast("long")))
    return F.when(text.rlike(_COUNT), counted).otherwise(_instant_text(text))


def _day_or_count(text: Column) -> Column:
    counted = _day(F.date_from_unix_date(text.try_cast("int")))
    return F.when(text.rlike(_COUNT), counted).otherwise(_day_text(text))


def _bytes_text(text: Column) -> Column:
    return F.when(text.rlike(_BASE64), F.unbase64(text))


_TYPED: Mapping[type, Mapping[type[DataType], Rule]] = {
    str: {StringType: _text, VarcharType: _text},
    int: {LongType: _same, IntegerType: _long, ShortType: _long, ByteType: _long},
    float: dict.fromkeys((DoubleType, FloatType, LongType, IntegerType, ShortType, ByteType), _real),
    bool: {BooleanType: _same},
    bytes: {BinaryType: _same},
    datetime: {TimestampType: _instant},
    date: {DateType: _day},
    UUID: {StringType: _uuid},
}
_SPELLED: Mapping[type, Rule] = {
    str: _same,  # Spark's JSON parser gives valid text
    bytes: _bytes_text,
    datetime: _instant_text,
    date: _day_text,
}
_SINCE_EPOCH: Mapping[type, Rule] = {**_SPELLED, datetime: _instant_or_count, date: _day_or_count}
