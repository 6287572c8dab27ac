"""Matches that share no events, on vectorised state."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from penstock.durations import MICROSECOND
from penstock.process.columns.keys import comparable, is_plain
from penstock.process.columns.names import SOURCE
from penstock.process.columns.refusals import refuse_missing
from penstock.process.keyed.recent import TRUNCATED, Recent
from penstock.process.keyed.stateful import stateful
from penstock.process.patterns.chains import Way
from penstock.process.patterns.conditions import bit_of, fulfilled
from penstock.process.patterns.once import CLOCK, EVENT, FITS, MATCHED, PARTS, TIME, Once
from penstock.process.patterns.pattern import Condition, Pattern, Step, refuse_repeats
from penstock.process.time.order import required_time

_AT = "_at"  # the time of an event
_TAKEN = (EVENT, MATCHED, PARTS, CLOCK, FITS, TIME, _AT, "due", "part")


@dataclass(frozen=True)
class MatchOnce:
    """What `match` returns without `overlap`; `recent` says of which events, and how long they count."""

    pattern: Pattern
    recent: Recent
    strict: bool
    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        refuse_repeats(self.pattern, "a pattern without overlap")

    def __call__(self, rows: DataFrame) -> DataFrame:
        looked_at, source = self.recent, [SOURCE] if SOURCE in rows.columns else []
        refuse_missing(rows, looked_at.by, "what is looked at by its keys")
        keys = self._keys(rows)
        taken = self._taken(rows, keys, source)
        lasting = looked_at.watermark is not None
        found = taken.transform(
            stateful(
                Once(keys, tuple(self._way(steps) for steps in self.pattern.ways)),
                by=keys,
                state=StructType([StructField(PARTS, _parts(taken)), StructField(CLOCK, LongType())]),
                returns=_returned(taken, [EVENT], source),
                time=_AT if lasting else None,
                watermark=looked_at.watermark,
                ttl=looked_at.within if lasting else None,
            )
        )
        named = (F.col(EVENT)[name].alias(name) for name in looked_at.by)
        return found.select(*named, EVENT, MATCHED, F.lit(False).alias(TRUNCATED), *source)

    def _keys(self, rows: DataFrame) -> tuple[str, ...]:
        """The names of the keys in state: their own, but where these or their values are not fit for it."""
        fit = (
            name not in _TAKEN and "." not in name and is_plain(rows.schema[name].dataType)
            for name in self.recent.by
        )
        named = enumerate(zip(self.recent.by, fit, strict=True))
        return tuple(name if own else f"_key{number}" for number, (name, own) in named)

    def _taken(self, rows: DataFrame, keys: tuple[str, ...], source: list[str]) -> DataFrame:
        time = required_time(rows, self.recent.time)
        by = [
            comparable(F.col(f"`{name}`"), rows.schema[name].dataType).alias(key)
            for name, key in zip(self.recent.by, keys, strict=True)
        ]
        event = F.struct(*(f"`{name}`" for name in rows.columns if name != SOURCE)).alias(EVENT)
        fits, us = fulfilled(self.conditions).alias(FITS), F.unix_micros(time).alias(TIME)
        taken = rows.select(*by, time.alias(_AT), event, fits, us, *source)
        return taken if self.strict else taken.where(F.col(FITS) != 0)

    def _way(self, steps: tuple[Step, ...]) -> Way:
        bits = ((bit_of(self.conditions, s.condition), bit_of(self.conditions, s.unless)) for s in steps)
        return Way(tuple(bits), self.recent.within // MICROSECOND, self.strict)


def _parts(taken: DataFrame) -> ArrayType:
    part, time = StructField("part", IntegerType()), StructField(TIME, LongType())
    return ArrayType(StructType([part, time, taken.schema[EVENT]]))


def _returned(taken: DataFrame, columns: list[str], source: list[str]) -> StructType:
    matched = StructField(MATCHED, ArrayType(taken.schema[EVENT].dataType))
    return StructType(
        [*(taken.schema[name] for name in columns), matched, *(taken.schema[p] for p in source)]
    )
