"""Patterns as expressions over the recent events of a key: they run inside Spark, in every mode."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.process.columns.names import SOURCE
from penstock.process.keyed.recent import EVENT, REACH, RECENT, TRUNCATED, Recent, recent
from penstock.process.patterns.conditions import bit_of, conditions_of, fulfilled
from penstock.process.patterns.match_absent import match_absent
from penstock.process.patterns.match_once import MatchOnce
from penstock.process.patterns.once import FITS, MATCHED
from penstock.process.patterns.pattern import Condition, Pattern, Step
from penstock.process.time.watermark import Watermark


def match(
    pattern: Pattern,
    *,
    by: str | Sequence[str],
    time: str,
    within: str | timedelta,
    strict: bool = False,
    overlap: bool = True,
    at_most: int = 256,
    watermark: Watermark | str | timedelta | None = None,
    bounded_keys: bool = False,
) -> Callable[[DataFrame], DataFrame]:
    """Give each match of a pattern when its last event comes, with the events that it is made of.

        drained = Pattern.times(3, "kind = 'login_failed'").then("kind = 'transfer' and amount > 1000")
        logins.transform(patterns.match(drained, by="user", time="at", within="10 minutes"))

    The events of a key are taken in the order of their times (of equal ones, in the log's), as far as they
    are there and not older than `within` when the last one comes. Events that fit no step are passed over;
    with `strict` they are not, and a match is made of neighbours. Every event that ends a match gives one
    row: its keys, `event`, `matched` (its events, the oldest first; of several choices the newest ones) and
    `truncated`, as in `keyed.recent`, which the other arguments are passed on to.

    Matches may share events. Without `overlap` a match uses up all events of its key that came until then:
    events are taken in the log's order, in vectorised state, which real-time mode does not have.

    A pattern that ends with `not_followed_by` is decided when the watermark has passed the time that it says:
    its `event` is the last one of the steps. It runs on vectorised state, too, and takes all events that have
    come until then in the order of their times; `at_most` does not bound it.
    """
    keys = (by,) if isinstance(by, str) else tuple(by)
    if taken := {EVENT, MATCHED, TRUNCATED, SOURCE} & {*keys}:
        raise FlowError(f"{min(taken)!r} is a column of every match", hint="rename the key before")
    listed = conditions_of(pattern)
    looked_at = recent(
        by=keys, time=time, within=within, at_most=at_most, watermark=watermark, bounded_keys=bounded_keys
    )
    if pattern.absence is not None:
        if not overlap:
            raise FlowError(
                "a match that ends with what did not come uses nothing up", hint="leave overlap=False out"
            )
        return match_absent(pattern, pattern.absence, looked_at, strict=strict, conditions=listed)
    kind = Match if overlap else MatchOnce
    return kind(pattern, looked_at, strict, listed)


@dataclass(frozen=True)
class Match:
    """What `match` returns."""

    pattern: Pattern
    recent: Recent
    strict: bool
    conditions: tuple[Condition, ...]

    def __call__(self, rows: DataFrame) -> DataFrame:
        judged = rows.withColumn(FITS, fulfilled(self.conditions))
        if not self.strict:  # what fits no step is passed over: it need not be kept or looked at
            judged = judged.where(F.col(FITS) != 0)
        looked_at = judged.transform(self.recent)
        in_order = looked_at.withColumn(RECENT, F.reverse(RECENT))
        found = in_order.withColumn(MATCHED, F.coalesce(*(self._found(way) for way in self.pattern.ways)))
        source = [SOURCE] if SOURCE in found.columns else []
        matches = found.where(F.col(MATCHED).isNotNull()).select(
            _plain(F.col(EVENT).dropFields(REACH)).alias(EVENT),
            F.transform(MATCHED, lambda number: _plain(F.get(RECENT, number))).alias(MATCHED),
            TRUNCATED,
            *source,
        )
        return matches.select(*(F.col(EVENT)[name].alias(name) for name in self.recent.by), "*")

    def _found(self, way: tuple[Step, ...]) -> Column:
        """The numbers of the events of a match that ends with the last event, or null."""
        numbered = F.transform(
            RECENT, lambda other, number: F.struct(other[FITS].alias(FITS), number.alias("n"))
        )
        none = F.lit(None).cast("array<int>")
        begun = F.struct(*(none.alias(_part(number)) for number in range(len(way))))
        ended = F.aggregate(numbered, begun, lambda parts, event: self._advanced(way, parts, event))
        last = ended[_part(len(way) - 1)]
        return F.when(F.element_at(last, -1) == F.size(RECENT) - 1, last)

    def _advanced(self, way: tuple[Step, ...], parts: Column, event: Column) -> Column:
        """For each step, the newest part of a match that ends with it, after one more event."""
        return F.struct(
            *(self._step(way, number, parts, event).alias(_part(number)) for number in range(len(way)))
        )

    def _step(self, way: tuple[Step, ...], number: int, parts: Column, event: Column) -> Column:
        own, itself = parts[_part(number)], F.array(event["n"])
        before = parts[_part(number - 1)] if number else F.array().cast("array<int>")
        fits = self._fulfils(event, way[number].condition)
        longer = F.when(fits, F.concat(before, itself))  # null if nothing came before
        if way[number].repeats:
            longer = F.coalesce(F.when(fits, F.concat(own, itself)), longer)
        return longer if self.strict else F.coalesce(longer, self._stays(way[number + 1 :], own, event))

    def _stays(self, following: tuple[Step, ...], own: Column, event: Column) -> Column:
        """What is passed over leaves a part as it is, unless it may not come before the next step."""
        if not following or following[0].unless is None:
            return own
        return F.when(~self._fulfils(event, following[0].unless), own)

    def _fulfils(self, event: Column, condition: Condition) -> Column:
        return event[FITS].bitwiseAND(F.lit(bit_of(self.conditions, condition)).cast("long")) != 0


def _part(number: int) -> str:
    return f"part{number}"


def _plain(event: Column) -> Column:
    return event.dropFields(FITS)
