"""Matches that share no events, on vectorised state."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from penstock.errors import FlowError
from penstock.process.keyed.recent import TRUNCATED, Recent
from penstock.process.keyed.stateful import stateful
from penstock.process.patterns.chains import Way
from penstock.process.patterns.conditions import bit_of, fulfilled
from penstock.process.patterns.once import CLOCK, EVENT, FITS, MATCHED, PARTS, TIME, Once
from penstock.process.patterns.pattern import Condition, Pattern, Step
from penstock.process.source import PLACE
from penstock.process.windows.shape import MICROSECOND


@dataclass(frozen=True)
class MatchOnce:
    """What `match` returns without `overlap`; `recent` says of which events, and how long they count."""

    pattern: Pattern
    recent: Recent
    strict: bool
    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if any(step.repeats for way in self.pattern.ways for step in way):
            raise FlowError(
                "a pattern without overlap has a step that goes on, which could end in many ways",
                hint="say how many events it has: Pattern.times(2, …)",
            )

    def __call__(self, rows: DataFrame) -> DataFrame:
        looked_at, place = self.recent, [PLACE] if PLACE in rows.columns else []
        event = F.struct(*(f"`{name}`" for name in rows.columns if name != PLACE)).alias(EVENT)
        fits, time = fulfilled(self.conditions).alias(FITS), F.unix_micros(looked_at.time).alias(TIME)
        taken = rows.select(*{*looked_at.by, looked_at.time}, event, fits, time, *place)
        taken = taken if self.strict else taken.where(F.col(FITS) != 0)
        lasting = looked_at.watermark is not None
        found = taken.transform(
            stateful(
                Once(looked_at.by, tuple(self._way(steps) for steps in self.pattern.ways)),
                by=looked_at.by,
                keeps=StructType([StructField(PARTS, _parts(taken)), StructField(CLOCK, LongType())]),
                returns=_returned(taken, [*looked_at.by, EVENT], place),
                time=looked_at.time if lasting else None,
                watermark=looked_at.watermark,
                ttl=looked_at.within if lasting else None,
            )
        )
        return found.select(*looked_at.by, EVENT, MATCHED, F.lit(False).alias(TRUNCATED), *place)

    def _way(self, steps: tuple[Step, ...]) -> Way:
        bits = ((bit_of(self.conditions, s.condition), bit_of(self.conditions, s.unless)) for s in steps)
        return Way(tuple(bits), self.recent.within // MICROSECOND, self.strict)


def _parts(taken: DataFrame) -> ArrayType:
    part, time = StructField("part", IntegerType()), StructField(TIME, LongType())
    return ArrayType(StructType([part, time, taken.schema[EVENT]]))


def _returned(taken: DataFrame, columns: list[str], place: list[str]) -> StructType:
    matched = StructField(MATCHED, ArrayType(taken.schema[EVENT].dataType))
    return StructType([*(taken.schema[name] for name in columns), matched, *(taken.schema[p] for p in place)])
