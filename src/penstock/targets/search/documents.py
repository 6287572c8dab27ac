"""Rows as documents of an index, and back: stored whole, by columns, without any loss."""

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import tantivy
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, StructType

from penstock.errors import DataError
from penstock.targets.search.description import BUCKET, KEY, ROW, Description
from penstock.targets.search.engine import filter_kind
from penstock.targets.search.stored import row_decoder

BUCKETS = 1024  # rows are spread over them by their keys, so that an index can be read piece by piece
_LONGEST_KEY = 200  # bytes; a longer one is known by its digest
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


@dataclass(frozen=True)
class Change:
    """What becomes of a key: a document that replaces the one before, or none."""

    key: str
    document: tantivy.Document | None


class Documents:
    """Makes documents of rows, and rows of what documents store."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._types = {each.name: each.dataType for each in description.schema}
        self.schema: pa.Schema = to_arrow_schema(StructType.fromJson(description.columns), timezone="UTC")
        self._decoder = row_decoder(self.schema)

    def changes(self, batch: pa.RecordBatch) -> Iterator[Change]:
        """Yield what a batch of rows changes, in order."""
        rows = pa.table([_cast(batch, each) for each in self.schema], schema=self.schema).combine_chunks()
        keys = self._keys(rows)
        documents = self._documents(rows, keys)
        gone = batch.column(_DELETED).to_pylist() if _DELETED in batch.schema.names else [False] * len(keys)
        for key, document, deleted in zip(keys, documents, gone, strict=True):
            yield Change(key, None if deleted else document)

    def rows(self, stored: Iterable[bytes]) -> pa.RecordBatch:
        """Return the rows that documents have stored."""
        decoded = [self._decoder.decode(each) for each in stored]
        columns: Sequence[Sequence[object]] = list(zip(*decoded, strict=True)) or [()] * len(self.schema)
        arrays = [pa.array(values, each.type) for values, each in zip(columns, self.schema, strict=True)]
        return pa.record_batch(arrays, schema=self.schema)

    def _keys(self, rows: pa.Table) -> list[str]:
        names = self._description.key
        for name in names:
            if rows.column(name).null_count:
                place = rows.column(name).is_null().index(True).as_py()
                raise DataError(
                    f"the key {name!r} of a row is null: {_shown(rows, place)}",
                    hint="fill it in or leave the row out in the flow; the batch was not written",
                )
        columns = [_comparable(rows.column(name)) for name in names]
        return [_key(each) for each in zip(*columns, strict=True)]

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


def _cast(batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
    column = batch.column(field.name)
    return column if column.type == field.type else column.cast(field.type)


def _comparable(column: pa.ChunkedArray) -> list[object]:
    """Values of a key so that those that Spark takes to be equal have the same text."""
    if pa.types.is_floating(column.type):
        return list(pc.add(column, pa.scalar(0.0, column.type)).cast(pa.string()).to_pylist())  # -0.0 is 0.0
    return list(column.to_pylist())


def _key(values: tuple[object, ...]) -> str:
    """A key as a text: a list in JSON, which no other key has."""
    text = msgspec.json.encode(values)
    return text.decode() if len(text) <= _LONGEST_KEY else f"sha256 {hashlib.sha256(text).hexdigest()}"


def _shown(rows: pa.Table, place: int) -> str:
    return str(rows.slice(place, 1).to_pylist()[0])[:200]
