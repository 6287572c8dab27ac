"""What is observed of the events that a flow reads: the highest times of their writers, batch by batch.

An observation can't group rows: each writer that is known when the flow is planned has a place in it, and of
others it is only known that there were some.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.documents import JsonObject
from penstock.identity import LABEL, VERSION
from penstock.process.columns.names import SOURCE
from penstock.process.time.watermark import TimeLine
from penstock.process.wire.messages import MADE_BY

PLACES = 128  # writers of a source; of more, a batch's times are looked up
_WRITER = "_writer"
_MADE, _SLOT = "_made", "_slot"
_OTHERS = "others"
_LONGEST = 600  # bytes of a header that are looked at: anybody may write one
_VERSION = f"@{VERSION}"
_OURS = f"^{LABEL}({_VERSION})?( [A-Za-z0-9._-]{{1,249}}/[0-9]{{1,9}}(/[0-9]{{1,19}})?)?$"
_Maxima = dict[TimeLine, dict[str, int]]


@dataclass(frozen=True)
class Observation:
    """The time lines of a source and its writers, each of which has a place in the report of a batch."""

    name: str
    lines: tuple[TimeLine, ...]
    writers: tuple[str, ...]

    def of(self, rows: DataFrame) -> DataFrame:
        """Return rows whose times are observed as they pass."""
        if not self.lines:
            return rows
        placed = rows.withColumn(_MADE, _made()).withColumn(_SLOT, self._slot())
        return placed.observe(self.name, *self._metrics()).drop(_MADE, _SLOT)

    def read(self, report: JsonObject) -> _Maxima | None:
        """Return what a batch's report says; None if there were writers that have no place in it."""
        found = report.get("observedMetrics", {}).get(self.name)
        if found is None or found.get(_OTHERS):
            return None
        return {
            line: {
                writer: found[_place(row, column)]
                for column, writer in enumerate(self.writers)
                if found.get(_place(row, column)) is not None
            }
            for row, line in enumerate(self.lines)
        }

    def _slot(self) -> Column:
        """The place of a row's writer, found by comparing: a name for each row would cost far more."""
        partitions: dict[int, Column] = {}
        for place, name in enumerate(self.writers):
            partition, _, made = name.partition(" ")
            own = _is_made(made) if made else F.col(_MADE).isNull()
            before = partitions.get(int(partition), F.when(F.lit(False), -1))
            partitions[int(partition)] = before.when(own, place)
        slot = F.when(F.lit(False), -1)
        for number, found in partitions.items():
            slot = slot.when(F.col(SOURCE)["partition"] == number, found)
        return F.coalesce(slot, F.lit(-1))

    def _metrics(self) -> Iterable[Column]:
        slot = F.col(_SLOT)
        yield F.count_if(slot < 0).alias(_OTHERS)
        for row, line in enumerate(self.lines):
            for column in range(len(self.writers)):
                yield F.max(F.when(slot == column, _time(line))).alias(_place(row, column))


def maxima(rows: DataFrame, lines: Sequence[TimeLine]) -> _Maxima:
    """Return the highest times of each writer, of rows that are read once more."""
    found = rows.groupBy(writer().alias(_WRITER)).agg(
        *(F.max(_time(line)).alias(_place(row, 0)) for row, line in enumerate(lines))
    )
    collected = found.collect()
    return {
        line: {each[_WRITER]: each[_place(row, 0)] for each in collected if each[_place(row, 0)] is not None}
        for row, line in enumerate(lines)
    }


def writer() -> Column:
    """Return the name of who wrote a row: its partition, and of what a flow made, the flow and its origin."""
    return F.concat_ws(" ", F.col(SOURCE)["partition"].cast("string"), F.substring_index(_made(), "/", 2))


def _is_made(origin: str) -> Column:
    return F.coalesce(F.col(_MADE).startswith(f"{origin}/") | (F.col(_MADE) == origin), F.lit(False))


def _made() -> Column:
    """What made a row: the first header, where it is ours and says what ours say, but for the version."""
    first = F.get(F.col(SOURCE)["headers"], F.lit(0))
    text = F.substring(first["value"], 1, _LONGEST).cast("string")
    flow = F.regexp_replace(text, _VERSION, "")
    return F.when((first["key"] == MADE_BY) & text.rlike(_OURS), flow)


def _time(line: TimeLine) -> Column:
    time = F.unix_micros(F.col(line.column))
    if line.future is None:
        return time
    ahead = time > F.unix_micros(F.col(line.arrived)) + F.lit(line.future)
    return F.when(~F.coalesce(ahead, F.lit(False)), time)


def _place(line: int, writer: int) -> str:
    return f"{line}/{writer}"
