"""The columns of a flow's results as PostgreSQL has them, and how Spark writes them as text for it."""

from dataclasses import dataclass

from psycopg.sql import SQL, Composable, Identifier
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
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import TargetError
from penstock.targets.postgres.table import DeclaredTable, check_column

SOURCE, DELETED, ORDER = "_source", "_deleted", "_order"
_KINDS: dict[type[DataType], str] = {
    StringType: "text",
    BooleanType: "boolean",
    ByteType: "smallint",
    ShortType: "smallint",
    IntegerType: "integer",
    LongType: "bigint",
    FloatType: "real",
    DoubleType: "double precision",
    DateType: "date",
    TimestampType: "timestamp with time zone",
    TimestampNTZType: "timestamp without time zone",
    BinaryType: "bytea",
}
_NESTED = (ArrayType, MapType, StructType)
_JSON = {
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ignoreNullFields": "false",
}


@dataclass(frozen=True)
class TableColumn:
    """A column: its name, its type in PostgreSQL, and its type in Spark."""

    name: str
    kind: str
    type: DataType

    def staged(self) -> Column:
        """Return the column in a shape that a line of CSV can hold and PostgreSQL reads as `kind`."""
        column = F.col(quoted(self.name))
        if isinstance(self.type, BinaryType):
            return F.concat(F.lit("\\x"), F.hex(column))
        if isinstance(self.type, _NESTED):
            return F.to_json(column.cast(_plain(self.type)), _JSON)
        return column


def columns_of(table: DeclaredTable, schema: StructType) -> tuple[TableColumn, ...]:
    """Return the columns that a flow's results have in a table; refuse what does not fit the declaration."""
    missing = set(table.columns or ()) - set(schema.names)
    if missing:
        raise TargetError(f"{table.name}: the results have no column {min(missing)!r}", hint="mend columns=")
    wanted = [field for field in schema if table.columns is None or field.name in table.columns]
    found = tuple(_column(table, field) for field in wanted if field.name not in (SOURCE, DELETED, ORDER))
    kinds = {column.name: column.kind for column in found}
    for key in table.keys:
        if kinds.get(key, "jsonb") == "jsonb":
            seen = f"is {kinds[key]}" if key in kinds else f"is not among {', '.join(kinds)}"
            raise TargetError(
                f"{table.name}: the key {key!r} {seen}", hint="name a column that is no structure"
            )
    _check_deleted(table, schema)
    return found


def definition(name: str, kind: str) -> Composable:
    """Return a column as CREATE TABLE has it; the kind is a word of ours, never a user's."""
    return SQL("{} {}").format(Identifier(name), SQL(kind))


def quoted(name: str) -> str:
    """Return a name as Spark's SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def _column(table: DeclaredTable, field: StructField) -> TableColumn:
    check_column(table.name, field.name)
    kind = _kind(field.dataType)
    if kind is None:
        raise TargetError(
            f"{table.name}: column {field.name!r} is of type {field.dataType.simpleString()}, for which "
            "PostgreSQL has none",
            hint="cast it in the flow",
        )
    return TableColumn(field.name, kind, field.dataType)


def _kind(type: DataType) -> str | None:
    if isinstance(type, DecimalType):
        return f"numeric({type.precision},{type.scale})"
    return "jsonb" if isinstance(type, _NESTED) else _KINDS.get(type.__class__)


def _plain(type: DataType) -> DataType:
    """The same structure with decimals as text: a JSON number is a float to most of its readers."""
    match type:
        case DecimalType():
            return StringType()
        case ArrayType():
            return ArrayType(_plain(type.elementType), type.containsNull)
        case MapType():
            return MapType(_plain(type.keyType), _plain(type.valueType), type.valueContainsNull)
        case StructType():
            return StructType([StructField(f.name, _plain(f.dataType), f.nullable) for f in type])
    return type


def _check_deleted(table: DeclaredTable, schema: StructType) -> None:
    if DELETED not in schema.names:
        return
    seen = schema[DELETED].dataType
    if not isinstance(seen, BooleanType):
        raise TargetError(f"{table.name}: {DELETED} is {seen.simpleString()}, expected boolean")
    if table.write == "append":
        raise TargetError(
            f"{table.name}: the results have a column {DELETED}, and rows that are appended can't be deleted",
            hint="write='upsert', or drop the column",
        )
