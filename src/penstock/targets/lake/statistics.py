"""What a Delta log knows of a file: its rows, and of some columns their bounds and how many are null.

Bounds are those of whole numbers, dates and times. delta-rs takes a column without bounds beside one that has
them for one without rows, and loses bounds of large decimals; Parquet's own leave NaN out. So the table says
which columns have them, to delta-rs too, and a file has all of these or none. Readers find the others' in the
files themselves.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql.types import (
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

PROPERTY = "delta.dataSkippingStatsColumns"
_MILLISECOND = timedelta(milliseconds=1)
_BOUNDED = (ByteType, ShortType, IntegerType, LongType, DateType, TimestampType, TimestampNTZType)
Bounds = tuple[Any, Any]


def bounded_columns(columns: StructType, partitions: Sequence[str]) -> list[str]:
    """Return the columns whose bounds the log of a new table is to have."""
    fit = [field.name for field in columns if isinstance(field.dataType, _BOUNDED)]
    return [name for name in fit if name.isidentifier() and name not in partitions]


def known_columns(configuration: Mapping[str, str | None], columns: StructType) -> tuple[str, ...]:
    """Return the columns whose bounds a table asks for; none if it asks for more than is given here."""
    named = [name.strip() for name in (configuration.get(PROPERTY) or "").split(",") if name.strip()]
    fit = set(bounded_columns(columns, ()))
    return tuple(named) if set(named) <= fit else ()


def statistics_of(file: pq.FileMetaData, names: Sequence[str]) -> str:
    """Return a file's statistics as Delta writes them, with those of the columns that are asked for."""
    nulls, least, greatest = dict[str, int](), dict[str, Any](), dict[str, Any]()
    for place in range(file.num_columns):
        column = file.schema.column(place)
        if column.path not in names or column.max_repetition_level:
            continue
        parts = [file.row_group(group).column(place).statistics for group in range(file.num_row_groups)]
        nulls[column.path] = sum(part.null_count for part in parts)
        if nulls[column.path] == file.num_rows:
            continue
        bounds = _bounds([part for part in parts if part.num_values])
        if bounds is None:
            return json.dumps({"numRecords": file.num_rows})
        least[column.path], greatest[column.path] = bounds
    known = {"minValues": least, "maxValues": greatest, "nullCount": nulls}
    return json.dumps({"numRecords": file.num_rows, **(known if nulls else {})})


def _bounds(parts: Sequence[Any]) -> Bounds | None:
    """Return the bounds of all row groups as JSON has them; None of times that Python has no words for."""
    try:
        least, greatest = min(part.min for part in parts), max(part.max for part in parts)
        if isinstance(least, datetime):
            return _milliseconds(least), _milliseconds(greatest + _MILLISECOND)
        return (least.isoformat(), greatest.isoformat()) if isinstance(least, date) else (least, greatest)
    except (OverflowError, ValueError, TypeError):
        return None


def _milliseconds(moment: datetime) -> str:
    """Return a time cut to milliseconds, in UTC if it has a zone."""
    zone = "Z" if moment.tzinfo else ""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + zone
