"""The types of MySQL and MariaDB, from the binary log or the catalogue: both give the same."""

from penstock.capture.mysql.table_map import (
    BINARY,
    BIT,
    DATE,
    DATETIME2,
    DECIMAL,
    DOUBLE,
    ENUM,
    FLOAT,
    GEOMETRY,
    INT24,
    LONG,
    LONGLONG,
    SET,
    SHORT,
    TEXTS,
    TIME2,
    TIMESTAMP2,
    TINY,
    YEAR,
    MappedColumn,
)  # fmt: skip
from penstock.capture.types import Type

SPECIAL = ("uuid", "inet6", "inet4")  # which the log has as plain bytes
_INTEGERS = {
    TINY: ("int2", "int2"), SHORT: ("int2", "int4"), INT24: ("int4", "int4"), LONG: ("int4", "int8"),
    LONGLONG: ("int8", "uint8"),
}  # fmt: skip
_KINDS = {
    "tinyint": TINY, "smallint": SHORT, "mediumint": INT24, "int": LONG, "bigint": LONGLONG,
    "float": FLOAT, "double": DOUBLE, "decimal": DECIMAL, "year": YEAR, "date": DATE, "datetime": DATETIME2,
    "timestamp": TIMESTAMP2, "time": TIME2, "bit": BIT, "enum": ENUM, "set": SET,
}  # fmt: skip
_BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_SHAPES = (
    "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
    "geometrycollection",
)  # fmt: skip
_PLAIN = {
    FLOAT: Type("float4"), DOUBLE: Type("float8"), YEAR: Type("int4"), DATE: Type("date", zeroes=True),
    ENUM: Type("text", is_enum=True), SET: Type("text", is_enum=True), TIME2: Type("span"),
    GEOMETRY: Type("geometry"),
}  # fmt: skip


def mapped_type(column: MappedColumn, special: str = "") -> Type:
    """Return the type of a column as the log describes it."""
    if special and column.collation == BINARY:
        return Type("uuid" if special == "uuid" else "text")
    if column.kind in TEXTS:
        return Type("blob" if column.collation == BINARY else "text")
    if column.kind == BIT:
        return _made(BIT, digits=column.bits)
    return _made(column.kind, unsigned=column.unsigned, digits=column.first, scale=column.second)


def declared_type(name: str, spelled: str, digits: int, scale: int, precision: int) -> Type:
    """Return the type of a column as the catalogue has it."""
    if name in SPECIAL:
        return Type("uuid" if name == "uuid" else "text")
    if name in _BYTES:
        return Type("blob")
    if name in _SHAPES:
        return Type("geometry")
    if name not in _KINDS:
        return Type("text")
    kind = _KINDS[name]
    digits = precision if kind in (DATETIME2, TIMESTAMP2, TIME2) else digits
    return _made(kind, unsigned="unsigned" in spelled, digits=digits, scale=scale)


def _made(kind: int, *, unsigned: bool = False, digits: int = 0, scale: int = 0) -> Type:
    if kind in _INTEGERS:
        return Type(_INTEGERS[kind][unsigned])
    if kind == DECIMAL:
        return Type("numeric", (digits << 16 | scale) + 4)
    if kind == BIT:
        return Type("bit", digits)
    if kind == DATETIME2:
        return Type("timestamp", digits, zeroes=True)
    if kind == TIMESTAMP2:
        return Type("timestamptz", digits, zeroes=True)
    return _PLAIN.get(kind, Type("text"))
