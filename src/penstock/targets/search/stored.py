"""Rows as an index stores them: the values of all columns in MessagePack, decoded by their types."""

from datetime import date, datetime
from decimal import Decimal
from types import GenericAlias
from typing import Any, Optional, TypedDict

import msgspec
import pyarrow as pa

_SIMPLE = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_binary, bytes),
    (pa.types.is_large_binary, bytes),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_date, date),
    (pa.types.is_timestamp, datetime),
)


def row_decoder(schema: pa.Schema) -> "msgspec.msgpack.Decoder[tuple[Any, ...]]":
    """Return what decodes a row of a schema to values that Arrow takes."""
    values: Any = GenericAlias(tuple, tuple(_or_none(each.type) for each in schema))
    return msgspec.msgpack.Decoder(values)


def _or_none(type: pa.DataType) -> Any:
    return Optional[_python_type(type)]  # noqa: UP045 (it is made while the program runs)


def _python_type(type: pa.DataType) -> Any:
    for is_kind, found in _SIMPLE:
        if is_kind(type):
            return found
    if pa.types.is_map(type):
        pair = GenericAlias(tuple, (_python_type(type.key_type), _or_none(type.item_type)))
        return GenericAlias(list, (pair,))
    if pa.types.is_list(type):
        return GenericAlias(list, (_or_none(type.value_type),))
    fields = {each.name: _or_none(each.type) for each in type}
    return TypedDict("Struct", fields)  # type: ignore[operator]
