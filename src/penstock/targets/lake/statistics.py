"""What a Delta log knows of a file: rows, and by column how many are null, the least and the greatest."""

import json
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq

_LONGEST = 64  # characters of a text; a column with longer ones has no bounds
_MILLISECOND = timedelta(milliseconds=1)
Bounds = tuple[Any, Any]


def statistics_of(file: pq.FileMetaData) -> str:
    """Return a file's statistics as Delta writes them, of columns that are no structures.

    Floats have no bounds: Parquet leaves NaN out of them, which is greater than all numbers to some readers.
    """
    found: dict[str, Any] = {"numRecords": file.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for place in range(file.num_columns):
        column = file.schema.column(place)
        if column.path != column.name or column.max_repetition_level:
            continue
        parts = [file.row_group(group).column(place).statistics for group in range(file.num_row_groups)]
        if all(part is not None and part.has_null_count for part in parts):
            found["nullCount"][column.name] = sum(part.null_count for part in parts)
        bounds = _bounds(parts)
        if bounds is not None:
            found["minValues"][column.name], found["maxValues"][column.name] = bounds
    return json.dumps(found)


def _bounds(parts: list[Any]) -> Bounds | None:
    """Return the bounds of all row groups as JSON has them; None if one has none that can be used."""
    if not all(part is not None and (part.has_min_max or not part.num_values) for part in parts):
        return None
    filled = [part for part in parts if part.num_values]
    if not filled:
        return None
    try:
        return _written(min(part.min for part in filled), max(part.max for part in filled))
    except (OverflowError, ValueError, TypeError):
        return None  # times that Python has no words for


def _written(least: Any, greatest: Any) -> Bounds | None:
    match least:
        case bool() | float():
            return None
        case int():
            return least, greatest
        case str():
            return (least, greatest) if max(len(least), len(greatest)) <= _LONGEST else None
        case datetime():
            return _milliseconds(least), _milliseconds(greatest + _MILLISECOND)
        case date():
            return least.isoformat(), greatest.isoformat()
    return None


def _milliseconds(moment: datetime) -> str:
    """Return a time cut to milliseconds, in UTC if it has a zone."""
    zone = "Z" if moment.tzinfo else ""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
