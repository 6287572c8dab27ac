"""Keys as texts: rows whose keys are equal have the same one, and no others do."""

import hashlib

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import DataError

_LONGEST = 200  # bytes; a longer key is known by its digest


def key_texts(rows: pa.Table, names: tuple[str, ...]) -> list[str]:
    """Return the keys of rows; refuse one that is null."""
    for name in names:
        if rows.column(name).null_count:
            place = rows.column(name).is_null().index(True).as_py()
            raise DataError(
                f"the key {name!r} of a row is null: {_shown(rows, place)}",
                hint="fill it in or leave the row out in the flow; the batch was not written",
            )
    columns = [_comparable(rows.column(name)) for name in names]
    return [_text(each) for each in zip(*columns, strict=True)]


def _comparable(column: pa.ChunkedArray) -> list[object]:
    """Values of a key so that those that Spark takes to be equal have the same text."""
    if pa.types.is_floating(column.type):
        return list(pc.add(column, pa.scalar(0.0, column.type)).cast(pa.string()).to_pylist())  # -0.0 is 0.0
    return list(column.to_pylist())


def _text(values: tuple[object, ...]) -> str:
    """A key as a text: a list in JSON, which no other key has."""
    text = msgspec.json.encode(values)
    return text.decode() if len(text) <= _LONGEST else f"sha256 {hashlib.sha256(text).hexdigest()}"


def _shown(rows: pa.Table, place: int) -> str:
    return str(rows.slice(place, 1).to_pylist()[0])[:200]
