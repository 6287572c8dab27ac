"""The columns of a flow's results as a Delta table has them."""

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
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import TargetError
from penstock.targets.lake.table import DeclaredTable

SOURCE, DELETED, ORDER = "_source", "_deleted", "_order"
_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_PARTITIONS = (StringType, BooleanType, DateType, *_WHOLE)
_KEYS = (*_PARTITIONS, BinaryType, DecimalType, TimestampType, TimestampNTZType)
_PLAIN = (*_KEYS, FloatType, DoubleType)
_NO_NAME = set(' ,;{}()\n\t="`')


def columns_of(table: DeclaredTable, schema: StructType) -> StructType:
    """Return the columns that a table has for a flow's results; refuse what does not fit the declaration."""
    missing = set(table.columns or ()) - set(schema.names)
    if missing:
        raise TargetError(f"{table.path}: the results have no column {min(missing)!r}", hint="mend columns=")
    wanted = [field for field in schema if table.columns is None or field.name in table.columns]
    kept = [field for field in wanted if field.name not in (SOURCE, DELETED, ORDER)]
    found = StructType([_column(table, field) for field in kept])
    _check_cases(table, found)
    _check_types(table, found, "key", table.keys, _KEYS)
    _check_types(table, found, "partition", table.partitions, _PARTITIONS)
    if not set(found.names) - set(table.partitions):
        raise TargetError(f"{table.path}: no column is left beside partition_by={table.partitions!r}")
    _check_deleted(table, schema)
    return found


def plain(type: DataType) -> DataType | None:
    """Return a type as Delta has it, where everything may be null; None if it has no such type."""
    match type:
        case ArrayType():
            element = plain(type.elementType)
            return element and ArrayType(element)
        case MapType():
            key, value = plain(type.keyType), plain(type.valueType)
            return MapType(key, value) if key and value else None
        case StructType():
            fields = [(field.name, plain(field.dataType)) for field in type]
            return (
                StructType([StructField(name, each) for name, each in fields if each])
                if all(each for _, each in fields)
                else None
            )
        case StringType():
            return StringType() if type.__class__ is StringType else None
    return type if type.__class__ in _PLAIN else None


def _column(table: DeclaredTable, field: StructField) -> StructField:
    if not field.name or _NO_NAME & set(field.name):
        raise TargetError(
            f"{table.path}: {field.name!r} is not a column name of a Delta table",
            hint="rename it in the flow: no spaces, quotes and none of ,;{}()=",
        )
    type = plain(field.dataType)
    if type is None:
        raise TargetError(
            f"{table.path}: column {field.name!r} is of type {field.dataType.simpleString()}, for which "
            "Delta has none",
            hint="cast it in the flow",
        )
    return StructField(field.name, type)


def _check_cases(table: DeclaredTable, found: StructType) -> None:
    seen: dict[str, str] = {}
    for name in found.names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            raise TargetError(
                f"{table.path}: columns {other!r} and {name!r} are one to Delta, which ignores case",
                hint="rename one of them in the flow",
            )


def _check_types(
    table: DeclaredTable,
    found: StructType,
    what: str,
    names: tuple[str, ...],
    fit: tuple[type[DataType], ...],
) -> None:
    for name in names:
        if name not in found.names:
            raise TargetError(f"{table.path}: the {what} {name!r} is not among {', '.join(found.names)}")
        if not isinstance(found[name].dataType, fit):
            raise TargetError(
                f"{table.path}: the {what} {name!r} is {found[name].dataType.simpleString()}",
                hint=f"cast it in the flow to {', '.join(each().simpleString() for each in fit)}",
            )


def _check_deleted(table: DeclaredTable, schema: StructType) -> None:
    if DELETED not in schema.names:
        return
    seen = schema[DELETED].dataType
    if not isinstance(seen, BooleanType):
        raise TargetError(f"{table.path}: {DELETED} is {seen.simpleString()}, expected boolean")
    if table.write == "append":
        raise TargetError(
            f"{table.path}: the results have a column {DELETED}, and rows that are appended can't be deleted",
            hint="write='upsert', or drop the column",
        )
