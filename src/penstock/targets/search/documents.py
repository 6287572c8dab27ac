"""Rows as documents of an index, and back: stored whole, by columns, without any loss."""

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import tantivy
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StructType

from penstock.targets.search.description import BUCKET, KEY, ROW, Description
from penstock.targets.search.engine import filter_kind
from penstock.targets.search.keys import key_texts
from penstock.targets.search.stored import cast_rows, row_decoder

BUCKETS = 1024  # rows are spread over them by their keys, so that an index can be read piece by piece
_DELETED = "_deleted"
_DATES = tuple(int(each.timestamp() * 1_000_000) for each in (tantivy.MIN_DATETIME, tantivy.MAX_DATETIME))
_UTC = pa.timestamp("us", "UTC")
_NAIVE = pa.timestamp("us")
_ADD: dict[str, Callable[[tantivy.Document, str, Any], None]] = {
    "text": tantivy.Document.add_text,
    "boolean": tantivy.Document.add_boolean,
    "integer": tantivy.Document.add_integer,
    "float": tantivy.Document.add_float,
    "date": tantivy.Document.add_date,
}
Change = tuple[str, tantivy.Document | None]  # a key, and what replaces its document, or none


class Documents:
    """Makes documents of rows, and rows of what documents store."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._types = {each.name: each.dataType for each in description.schema}
        self.schema: pa.Schema = to_arrow_schema(StructType.fromJson(description.columns), timezone="UTC")
        self._decoder = row_decoder(self.schema)

    def changes(self, batch: pa.RecordBatch) -> list[Change]:
        """Return what a batch of rows changes, in order."""
        rows = cast_rows(batch, self.schema)
        keys = key_texts(rows, self._description.key)
        documents = self._documents(rows, keys)
        gone = batch.column(_DELETED).to_pylist() if _DELETED in batch.schema.names else [False] * len(keys)
        return [
            (key, None if deleted else document)
            for key, document, deleted in zip(keys, documents, gone, strict=True)
        ]

    def rows(self, stored: Iterable[bytes]) -> pa.RecordBatch:
        """Return the rows that documents have stored."""
        decoded = [self._decoder.decode(each) for each in stored]
        columns: Sequence[Sequence[object]] = list(zip(*decoded, strict=True)) or [()] * len(self.schema)
        arrays = [pa.array(values, each.type) for values, each in zip(columns, self.schema, strict=True)]
        return pa.record_batch(arrays, schema=self.schema)

    def _documents(self, rows: pa.Table, keys: list[str]) -> list[tantivy.Document]:
        made = [tantivy.Document() for _ in keys]
        encode = msgspec.msgpack.Encoder().encode
        values = [column.to_pylist() for column in rows.columns]
        for document, key, row in zip(made, keys, zip(*values, strict=True), strict=True):
            document.add_text(KEY, key)
            document.add_unsigned(BUCKET, zlib.crc32(key.encode()) % BUCKETS)
            document.add_bytes(ROW, encode(row))
        for name, column, listed in zip(rows.column_names, rows.columns, values, strict=True):
            _add(made, name, self._types[name], column, listed)
        return made


def _add(
    documents: list[tantivy.Document], name: str, type: DataType, column: pa.ChunkedArray, listed: list[Any]
) -> None:
    """Add a column to documents, so that they can be found by it."""
    kind = filter_kind(type)
    if kind is None:
        return
    add = _ADD[kind]
    if isinstance(type, ArrayType):
        for document, values in zip(documents, listed, strict=True):
            for value in values or ():
                if value is not None:
                    add(document, name, value)
        return
    for document, value in zip(documents, _findable(kind, column, listed), strict=True):
        if value is not None:
            add(document, name, value)


def _findable(kind: str, column: pa.ChunkedArray, listed: list[Any]) -> list[Any]:
    """A column as the index compares it; a time that it can't hold is as early or late as it can."""
    if kind == "float":
        return list(column.cast(pa.float64()).to_pylist())
    if kind != "date":
        return listed
    micros = column if pa.types.is_timestamp(column.type) else column.cast(_NAIVE)
    earliest, latest = _DATES
    within = pc.min_element_wise(
        pc.max_element_wise(micros.cast(pa.int64()), earliest, skip_nulls=False), latest, skip_nulls=False
    )
    return list(within.cast(_UTC).to_pylist())
