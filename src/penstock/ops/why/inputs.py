"""The events that a flow has read, as far as they may be behind a result: kept by Spark, chosen by number."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.ops.why.answer import BehindEvent, Made, Place
from penstock.process.columns.names import SOURCE
from penstock.process.columns.naming import quoted
from penstock.testing.recomputed import plain

MOST = 100_000  # candidates
_ORDER = tuple(f"{SOURCE}.{name}" for name in ("written", "partition", "offset"))


@dataclass(frozen=True)
class Candidate:
    """An event that may be behind a result."""

    written: datetime
    argument: str
    partition: int
    offset: int
    group: str


@dataclass(frozen=True)
class Inputs:
    """Candidates in the order of the log, and the frames that they are in; `looked_up` are whole tables."""

    candidates: Sequence[Candidate]
    frames: Mapping[str, DataFrame]
    looked_up: Mapping[str, DataFrame]

    def only(self, numbers: Collection[int]) -> dict[str, DataFrame]:
        """Return what the flow's function gets of some candidates."""
        chosen = {name: frame.where(_among(self._of(name, numbers))) for name, frame in self.frames.items()}
        return {**chosen, **self.looked_up}

    def groups(self, numbers: Iterable[int]) -> list[list[int]]:
        """Candidates of one group each, as events of other keys mostly don't matter."""
        found: dict[tuple[str, str], list[int]] = {}
        for number in numbers:
            each = self.candidates[number]
            found.setdefault((each.argument, each.group), []).append(number)
        return list(found.values())

    def events(self, numbers: Collection[int]) -> tuple[BehindEvent, ...]:
        """Return candidates with what they hold, in the order of the log."""
        chosen = self.only(numbers)
        found = [
            _event(name, plain(row))
            for name in self.frames
            for row in chosen[name].collect()  # as many as are asked for
        ]
        return tuple(sorted(found, key=lambda each: (each.written, each.place)))

    def close(self) -> None:
        for frame in self.frames.values():
            frame.unpersist()

    def _of(self, argument: str, numbers: Iterable[int]) -> list[tuple[int, int]]:
        own = (self.candidates[number] for number in numbers)
        return sorted((each.partition, each.offset) for each in own if each.argument == argument)


def gathered(
    sources: Mapping[str, DataFrame],
    conditions: Mapping[str, Column],
    grouped_by: Mapping[str, Sequence[str]],
    looked_up: Mapping[str, DataFrame],
) -> Inputs | None:
    """Keep the events that fit, grouped by some columns; None if there are too many of them to be tried."""
    frames, found = {}, list[Candidate]()
    for name, frame in sources.items():
        kept = frame.where(conditions[name]).limit(MOST + 1).repartition(1).sortWithinPartitions(*_ORDER)
        frames[name] = kept.persist()
        found += _candidates(name, frames[name], grouped_by[name])
    inputs = Inputs(
        sorted(found, key=lambda each: (each.written, each.argument, each.partition, each.offset)),
        frames,
        looked_up,
    )
    if len(found) <= MOST:
        return inputs
    inputs.close()
    return None


def _candidates(argument: str, frame: DataFrame, by: Sequence[str]) -> list[Candidate]:
    group = F.to_json(F.struct(F.lit(0), *map(quoted, by)))
    rows = frame.select(*_ORDER, group.alias("group")).collect()
    return [
        Candidate(row.written.astimezone(UTC), argument, row.partition, row.offset, row.group) for row in rows
    ]


def _among(places: list[tuple[int, int]]) -> Column:
    """Whether an event is one of some places; neighbours are one range, as the text is parsed each time."""
    parts = []
    for partition, each in groupby(places, key=lambda place: place[0]):
        ranges = _ranges([offset for _, offset in each])
        single = [str(low) for low, high in ranges if low == high]
        said = [f"{SOURCE}.offset between {low} and {high}" for low, high in ranges if low < high]
        said += [f"{SOURCE}.offset in ({', '.join(single)})"] if single else []
        parts.append(f"({SOURCE}.partition = {partition} and ({' or '.join(said)}))")
    return F.expr(" or ".join(parts) or "false")


def _ranges(offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted offsets as ranges.

    >>> _ranges([1, 2, 3, 7, 9, 10])
    [(1, 3), (7, 7), (9, 10)]
    """
    found: list[tuple[int, int]] = []
    for offset in offsets:
        if found and offset == found[-1][1] + 1:
            found[-1] = (found[-1][0], offset)
        else:
            found.append((offset, offset))
    return found


def _event(argument: str, row: dict[str, Any]) -> BehindEvent:
    source = row.pop(SOURCE)
    place = Place(source["topic"], source["partition"], source["offset"])
    return BehindEvent(argument, place, source["written"], row, Made.of_headers(source["headers"]))
