"""Rows as the sources of documents, in JSON, and back without any loss."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from penstock.documents import JsonObject
from penstock.targets.search.description import Description
from penstock.targets.search.keys import key_texts
from penstock.targets.search.stored import cast_rows, json_decoder

_DELETED = "_deleted"
Change = tuple[str, bytes | None]  # a key, and its new source, or none if it is deleted


class Sources:
    """Makes sources of rows, and rows of sources."""

    def __init__(self, description: Description) -> None:
        self._key = description.key
        self.schema: pa.Schema = to_arrow_schema(description.schema, timezone="UTC")
        self._decoder = json_decoder(self.schema)

    def changes(self, batch: pa.RecordBatch) -> Iterator[Change]:
        """Yield what a batch of rows changes, in order."""
        rows = cast_rows(batch, self.schema)
        keys = key_texts(rows, self._key)
        gone = batch.column(_DELETED).to_pylist() if _DELETED in batch.schema.names else [False] * len(keys)
        encode, names = msgspec.json.Encoder().encode, rows.column_names
        values = zip(*(_jsonable(column) for column in rows.columns), strict=True)
        for key, row, deleted in zip(keys, values, gone, strict=True):
            yield key, None if deleted else encode(dict(zip(names, row, strict=True)))

    def rows(self, sources: Iterable[bytes]) -> pa.RecordBatch:
        """Return the rows of sources."""
        found: list[JsonObject] = [self._decoder.decode(each) for each in sources]
        arrays = [pa.array([row[each.name] for row in found], each.type) for each in self.schema]
        return pa.record_batch(arrays, schema=self.schema)


def _jsonable(column: pa.ChunkedArray) -> list[Any]:
    values = list(column.to_pylist())
    return [_finite(value) for value in values] if _has_floats(column.type) else values


def _has_floats(type: pa.DataType) -> bool:
    inner = (type.field(place).type for place in range(type.num_fields))
    return bool(pa.types.is_floating(type)) or any(map(_has_floats, inner))


def _finite(value: Any) -> Any:
    """A value whose floats JSON can write; it has no numbers for NaN and the infinities."""
    match value:
        case float():
            return value if math.isfinite(value) else str(value)
        case list() | tuple():
            return [_finite(each) for each in value]
        case dict():
            return {name: _finite(each) for name, each in value.items()}
    return value
