"""Conservation: every row that came to windows is in a result, in a side output, dropped, or waits in state.

What was late is a matter of when batches were cut, so that the results of windows with a late policy can't be
recomputed one by one. But no row may be missing from the sum.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from penstock.documents import JsonObject
from penstock.durations import MICROSECOND
from penstock.process.columns.lineage import Lineage, lineage_of
from penstock.process.columns.names import SOURCE, START
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.state.frames import arrow_batches, unpack
from penstock.process.state.migration import renamed
from penstock.process.state.vectorised import arrow_schema
from penstock.process.windows.kept import FIRST, KIND, ON_TIME, RETRACTIONS, ROWS
from penstock.process.windows.panes import Panes
from penstock.process.windows.shape import Fixed
from penstock.process.windows.sliding import EMITTED
from penstock.process.windows.stateful import WINDOWS
from penstock.targets import Inspection, Target

_EMITTED, _STATE = "emitted", "state"


@dataclass(frozen=True)
class Conservation:
    """Rows that came to windows, and what became of them.

    Where windows overlap, a row counts once for each window that it belongs to, and `dropped` are those that
    were over when it came, whatever became of the row.
    """

    taken: int
    emitted: int
    waiting: int
    sent: int
    dropped: int

    @property
    def exact(self) -> bool:
        """Whether nothing is missing from the sum."""
        return self.taken == self.emitted + self.waiting + self.sent + self.dropped


def windows_of(results: DataFrame) -> JsonObject | None:
    """What a flow's results say of their windows; None if they have no late policy."""
    return results.schema[ROWS].metadata.get(WINDOWS) if ROWS in results.columns else None


def emitted_columns(results: DataFrame) -> StructType | None:
    """The columns by which rows are added up; None if the results lack some of them."""
    described = windows_of(results)
    if described is None:
        return None
    names = [KIND, ROWS, *([] if described["each"] else [*described["by"], START])]
    if not set(names) <= set(results.columns):
        return None
    return StructType([StructField(name, results.schema[name].dataType) for name in names])


def kept_results(results: DataFrame, target: Target, inspection: Inspection) -> DataFrame | None:
    """What a target keeps of the results of windows; None if their rows can't be added up there.

    Of a result that was corrected, an upsert keeps no other.
    """
    columns = emitted_columns(results)
    if columns is None or not _can_be_added_up(results, columns, target):
        return None
    found = target.contents(results.sparkSession, columns, inspection)
    corrected = target.upsert_key and results.schema[ROWS].metadata[WINDOWS]["each"]
    return found.withColumn(KIND, F.lit(ON_TIME)) if corrected and found is not None else found


def _can_be_added_up(results: DataFrame, columns: StructType, target: Target) -> bool:
    """Whether the rows of windows are in a target that has these columns, with one row of each key or all."""
    if not set(columns.names) <= set(target.columns or columns.names):
        return False
    described = results.schema[ROWS].metadata[WINDOWS]
    needed = {"id"} if described["each"] else {*described["by"], START}
    return not target.upsert_key or needed <= set(target.upsert_key)


def conservation(
    results: DataFrame, written: DataFrame, side_outputs: DataFrame | None, checkpoint: str
) -> Conservation:
    """Add up rows.

    `results` are the flow's, recomputed over what it has read; `written` are those in its target,
    `side_outputs` the events in those topics, and `checkpoint` is where its state is. What a topic holds is
    in the order of its offsets. A table has none: there, a window's last result is the one of the most rows.
    """
    described = results.schema[ROWS].metadata[WINDOWS]
    state = _state(results, checkpoint)
    if "overlap" in described:
        return _of_overlapping(results, written, state)
    emitted, waiting = (_of_each if described["each"] else _of_windows)(results, written, state)
    dropped = state.agg(F.sum("dropped")).first() or (0,)
    sent = side_outputs.count() if side_outputs is not None else 0
    return Conservation(_taken(results, described["each"]), emitted, waiting, sent, dropped[0] or 0)


def _of_windows(results: DataFrame, written: DataFrame, state: DataFrame) -> tuple[int, int]:
    """Rows in the last result of each window, and rows that are in state, but in none yet."""
    described = results.schema[ROWS].metadata[WINDOWS]
    by = list(described["by"])
    places = StructType([*(results.schema[name] for name in by), StructField(START, LongType())])
    schema = StructType([*places, StructField(ROWS, LongType())]).toNullable()
    windows = _Windows(described["place"], arrow_schema(results, schema), lineage_of(places))
    waiting = state.mapInArrow(windows, schema)
    counted = _last(written, by).unionByName(waiting.select(*by, START, F.lit(_STATE).alias("side"), ROWS))
    sides = counted.groupBy(*by, START).pivot("side", [_EMITTED, _STATE]).sum(ROWS)
    emitted = F.coalesce(_EMITTED, F.lit(0))
    sums = sides.agg(F.sum(emitted), F.sum(F.col(_STATE) - emitted)).first() or (0, 0)
    return sums[0] or 0, sums[1] or 0


def _of_overlapping(results: DataFrame, written: DataFrame, state: DataFrame) -> Conservation:
    described = results.schema[ROWS].metadata[WINDOWS]
    waiting = state.mapInArrow(_Waiting(*described["overlap"]), "rows long").agg(F.sum("rows"))
    emitted = _last(written, list(described["by"])).agg(F.sum(ROWS))
    counts = (results.agg(F.sum(ROWS)), emitted, waiting, state.agg(F.sum("missed")))
    taken, in_results, in_state, missed = (int((each.first() or (0,))[0] or 0) for each in counts)
    return Conservation(taken, in_results, in_state, 0, missed)


def _of_each(results: DataFrame, written: DataFrame, state: DataFrame) -> tuple[int, int]:  # noqa: ARG001
    """Events whose result was emitted, each once for the first time, and those that wait for it."""
    waiting = state.mapInArrow(_waiting_events, "events long").agg(F.sum("events")).first() or (0,)
    return written.where(F.col(KIND).isin(*FIRST)).count(), waiting[0] or 0


def _taken(results: DataFrame, each: bool) -> int:
    """In a batch query nothing is late: what has a side output there has no time."""
    aside = F.count_if(F.col(SIDE_OUTPUT).isNotNull()) if SIDE_OUTPUT in results.columns else F.lit(0)
    emitted = F.count(ROWS) if each else F.coalesce(F.sum(ROWS), F.lit(0))
    found = results.agg(emitted + aside).first()
    return int(found[0]) if found else 0


def _state(results: DataFrame, checkpoint: str) -> DataFrame:
    reader = results.sparkSession.read.format("statestore").option("stateVarName", "bucket")
    return reader.load(checkpoint).select("value.kept", "value.last", "value.dropped", "value.missed")


def _last(written: DataFrame, by: list[str]) -> DataFrame:
    """The last result of each window; one that was retracted counts for nothing."""
    order = (
        F.col(SOURCE)["offset"]
        if SOURCE in written.columns
        else F.struct(F.col(KIND).isin(*RETRACTIONS), ROWS)
    )
    last = F.max_by(F.struct(KIND, ROWS), order).alias("last")
    found = written.groupBy(*by, F.unix_micros(START).alias(START)).agg(last)
    return found.where(~F.col("last.kind").isin(*RETRACTIONS)).select(
        *by, START, F.lit(_EMITTED).alias("side"), f"last.{ROWS}"
    )


def _waiting_events(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        frames = [unpack(kept) for kept in batch.column("kept").to_pylist()]
        counts = [frame.filter(~pl.col(EMITTED)).height for frame in frames]
        yield pa.record_batch([pa.array(counts, pa.int64())], names=["events"])


@dataclass(frozen=True)
class _Waiting:
    """Rows that wait in panes, once for each window that is not over."""

    size: int
    every: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        panes = Panes((), {}, 0, Fixed(self.size * MICROSECOND, self.every * MICROSECOND))
        for batch in batches:
            states = zip(batch.column("kept").to_pylist(), batch.column("last").to_pylist(), strict=True)
            counts = [panes.waiting(unpack(kept), last) for kept, last in states]
            yield pa.record_batch([pa.array(counts, pa.int64())], names=["rows"])


@dataclass(frozen=True)
class _Windows:
    """The windows that wait in state: key, start and rows."""

    place: str
    schema: pa.Schema
    lineage: Lineage

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for kept in batch.column("kept").to_pylist():
                names = [*self.schema.names[:-2], pl.col(self.place).alias(START), ROWS]
                frame = renamed(unpack(kept), self.lineage)
                yield from arrow_batches(frame.select(names), self.schema)
