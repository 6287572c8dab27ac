"""Rows as an index stores them: the values of all columns, decoded by their types."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from types import GenericAlias
from typing import Any, Optional, TypedDict

import msgspec
import pyarrow as pa

_SIMPLE = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_binary, bytes),
    (pa.types.is_large_binary, bytes),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_date, date),
    (pa.types.is_timestamp, datetime),
)


class AnyFloat(float):
    """A float that JSON may have as a text: it has no numbers for NaN and the infinities."""


def cast_rows(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Return the columns of a schema of a batch, in its types."""
    columns = [batch.column(each.name) for each in schema]
    cast = [
        column if column.type == each.type else column.cast(each.type)
        for column, each in zip(columns, schema, strict=True)
    ]
    return pa.table(cast, schema=schema).combine_chunks()


def json_decoder(schema: pa.Schema) -> "msgspec.json.Decoder[dict[str, Any]]":
    """Return what decodes a row of a schema from an object of JSON to values that Arrow takes."""
    values = _record(schema, AnyFloat)
    return msgspec.json.Decoder(values, dec_hook=lambda kind, value: kind(value))


def row_decoder(schema: pa.Schema) -> "msgspec.msgpack.Decoder[tuple[Any, ...]]":
    """Return what decodes a row of a schema from MessagePack to values that Arrow takes."""
    values: Any = GenericAlias(tuple, tuple(_or_none(each.type) for each in schema))
    return msgspec.msgpack.Decoder(values)


def _or_none(type: pa.DataType, floats: type = float) -> Any:
    return Optional[_python_type(type, floats)]  # noqa: UP045 (it is made while the program runs)


def _python_type(type: pa.DataType, floats: type) -> Any:
    if pa.types.is_floating(type):
        return floats
    for is_kind, found in _SIMPLE:
        if is_kind(type):
            return found
    if pa.types.is_map(type):
        pair = GenericAlias(tuple, (_python_type(type.key_type, floats), _or_none(type.item_type, floats)))
        return GenericAlias(list, (pair,))
    if pa.types.is_list(type):
        return GenericAlias(list, (_or_none(type.value_type, floats),))
    return _record(type, floats)


def _record(fields: Iterable[pa.Field], floats: type) -> Any:
    named = {each.name: _or_none(each.type, floats) for each in fields}
    return TypedDict("Record", named)  # type: ignore[operator]
