"""Patterns that end with what did not come, on vectorised state."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, StructField, StructType

from penstock.durations import MICROSECOND
from penstock.errors import FlowError
from penstock.process.columns.keys import comparable
from penstock.process.columns.names import SOURCE, TIME, US
from penstock.process.keyed.recent import Recent
from penstock.process.patterns.absent import TRUNCATED, AbsentStep
from penstock.process.patterns.chains import Way
from penstock.process.patterns.conditions import bit_of, fulfilled
from penstock.process.patterns.once import EVENT, FITS, MATCHED
from penstock.process.patterns.pattern import Absence, Condition, Pattern, refuse_repeats
from penstock.process.state.description import StateDescription
from penstock.process.state.vectorised import columns_of, vectorised
from penstock.process.time.order import column, order_of, required_time
from penstock.process.time.watermark import Watermark

_BUCKETS = 16


def match_absent(
    pattern: Pattern, absence: Absence, recent: Recent, *, strict: bool, conditions: tuple[Condition, ...]
) -> "MatchAbsent":
    """Check that a pattern can end with what did not come."""
    refuse_repeats(pattern, "a pattern that ends with what did not come")
    if recent.watermark is None:
        raise FlowError(
            "what did not come is known when the watermark has passed, and bounded keys have none",
            hint="leave bounded_keys out",
        )
    return MatchAbsent(pattern, absence, recent, recent.watermark, strict, conditions)


@dataclass(frozen=True)
class MatchAbsent:
    """What `match` returns of a pattern with an absence; `recent` says of which events."""

    pattern: Pattern
    absence: Absence
    recent: Recent
    watermark: Watermark
    strict: bool
    conditions: tuple[Condition, ...]

    def __call__(self, rows: DataFrame) -> DataFrame:
        taken = self._taken(rows)
        source = [taken.schema[SOURCE]] if SOURCE in rows.columns else []
        matched = StructField(MATCHED, ArrayType(taken.schema[EVENT].dataType))
        schema = StructType([taken.schema[EVENT], matched, StructField(TRUNCATED, BooleanType()), *source])
        step = AbsentStep(self._keys, self._ways(), self._bit(self.absence.condition), self._lasting)
        kept = columns_of(taken.schema, *self._keys, *taken.columns)
        state = StateDescription.of(self._kind(), kept, self._keys, _BUCKETS)
        found = vectorised(taken, step, schema, state)
        keys = [F.col(EVENT)[name].alias(name) for name in self.recent.by]
        return found.select(*keys, EVENT, MATCHED, TRUNCATED, *(SOURCE for _ in source))

    def _taken(self, rows: DataFrame) -> DataFrame:
        time = required_time(rows, self.recent.time)
        own = rows.withColumn(US, F.unix_micros(time)).withColumn(FITS, fulfilled(self.conditions))
        timed = self.watermark.marked(own, column(rows, self.recent.time))
        # The time is asked for so that Spark filters after the watermark, which all events move.
        never = F.unix_micros(TIME) < F.lit(-(2**62))
        timed = timed if self.strict else timed.where((F.col(FITS) != 0) | never)
        event = F.struct(*(f"`{name}`" for name in rows.columns if name != SOURCE)).alias(EVENT)
        keys = [
            comparable(F.col(f"`{name}`"), rows.schema[name].dataType).alias(key)
            for name, key in zip(self.recent.by, self._keys, strict=True)
        ]
        source = [SOURCE] if SOURCE in rows.columns else []
        return timed.select(*keys, US, *order_of(timed, numbered=True)[1:], FITS, event, *source)

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(f"_key{number}" for number in range(len(self.recent.by)))

    @property
    def _lasting(self) -> int:
        return self.absence.within // MICROSECOND

    def _bit(self, condition: Condition | None) -> int:
        return bit_of(self.conditions, condition)

    def _ways(self) -> tuple[Way, ...]:
        within = self.recent.within // MICROSECOND
        return tuple(
            Way(tuple((self._bit(s.condition), self._bit(s.unless)) for s in way), within, self.strict)
            for way in self.pattern.ways
        )

    def _kind(self) -> str:
        """What is kept are events and which conditions they fulfil: with others it is another state."""
        said = ", ".join(each if isinstance(each, str) else "a column" for each in self.conditions)
        reach = self.recent.within // MICROSECOND + self._lasting
        return f"events of the last {reach} us and whether they fulfil {said}"
