"""The search for the events behind a result: candidates, proved by computing the result from them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.log import Topic
from penstock.log.ledger import Offsets
from penstock.ops.why.cut import cut
from penstock.ops.why.inputs import Inputs, gathered
from penstock.ops.why.minimum import Tries, reduced
from penstock.ops.why.reach import Reach, grouping, reaches, since_start
from penstock.ops.why.wanted import Nearest, Wanted
from penstock.pipeline.flow import Function

SHOWN = 20  # events without a proof
_BATCHES = 8  # whose ends are tried


@dataclass(frozen=True)
class Found:
    """Some candidates and how near the result that comes of them is; None if there is none."""

    inputs: Inputs
    numbers: list[int]
    nearest: Nearest | None
    words: str
    minimal: bool = False

    @property
    def distance(self) -> float:
        return float("inf") if self.nearest is None else len(self.nearest.differs)


@dataclass
class Search:
    """Looks for the events behind one result of a flow's function, with so many runs of it at most.

    Runs that look for candidates don't count as long as they are few: without candidates there is no answer.
    `ends` are where the flow's last batches ended, the last one first.
    """

    function: Function
    sources: Mapping[str, DataFrame]
    topics: Mapping[str, Topic[Any]]
    looked_up: Mapping[str, DataFrame]
    wanted: Wanted
    most: int
    ends: Sequence[Offsets] = ()
    runs: int = 0
    skipped: list[str] = field(default_factory=list)  # where there were too many candidates

    def found(self) -> Found | None:
        """Return the events behind the result, or the nearest that there is; None without candidates."""
        if self.wanted.lacks_end:
            self.wanted = self.wanted.ended(self._since_start())
        best: Found | None = None
        for reach in reaches(self.wanted, self.topics, self._schemas):
            found = self._reached(reach)
            if found is None:
                continue
            best, worse = (found, best) if best is None or found.distance < best.distance else (best, found)
            if worse is not None:
                worse.inputs.close()
            if best.distance == 0:
                break
        return best if best is None or best.nearest is None else self._reduced(best, best.nearest)

    def _since_start(self) -> DataFrame:
        """What the flow makes of the events of the key since the window began: that says when it ended."""
        conditions = since_start(self.wanted, self.topics, self._schemas)
        frames = {name: frame.where(conditions[name]) for name, frame in self.sources.items()}
        return self.function(**frames, **self.looked_up)

    @cached_property
    def _schemas(self) -> dict[str, StructType]:
        return {name: frame.schema for name, frame in self.sources.items()}

    @cached_property
    def _grouping(self) -> dict[str, list[str]]:
        return grouping(self.wanted, self.topics, self._schemas)

    def _reached(self, reach: Reach) -> Found | None:
        """The nearest result of candidates within reach: of all that were there, or of the first of them."""
        inputs = gathered(self.sources, reach.conditions, self._grouping, self.looked_up)
        if inputs is None:
            self.skipped.append(reach.words)
            return None
        if not inputs.candidates:
            inputs.close()
            return None
        tried = _Tried(self, inputs)
        if tried.judge(self._before(inputs)) != 0 and cut(len(inputs.candidates), tried.judge) is None:
            tried.after_batches()
        numbers, nearest = tried.best()
        return Found(inputs, numbers, nearest, reach.words)

    def _before(self, inputs: Inputs) -> int:
        """How many candidates were there when the result was written; clocks may differ a little."""
        written = self.wanted.written
        if written is None:
            return len(inputs.candidates)
        return sum(each.written <= written for each in inputs.candidates)

    def nearest(self, inputs: Inputs, numbers: Collection[int]) -> Nearest | None:
        """Return how near the result of some candidates comes: a run of the flow's function."""
        self.runs += 1
        return self.wanted.nearest(self.function(**inputs.only(numbers)))

    def _reduced(self, found: Found, known: Nearest) -> Found:
        """Leave out what makes no difference; what does not come of all of them can't be explained."""
        if not known.is_near:
            return found

        def holds(numbers: Collection[int]) -> bool:
            nearest = self.nearest(found.inputs, numbers)
            return nearest is not None and nearest.is_like(known)

        tries = Tries(holds, self.most)
        kept = reduced(found.inputs.groups(found.numbers), tries)
        return replace(found, numbers=kept.kept, minimal=kept.minimal)


@dataclass
class _Tried:
    """What came of some of the candidates within one reach."""

    search: Search
    inputs: Inputs
    seen: dict[tuple[int, ...], Nearest | None] = field(default_factory=dict)

    def judge(self, count: int) -> int | None:
        """Say of the first candidates whether they are too few, too many, or right."""
        nearest = self._of(tuple(range(count)))
        if nearest is None:
            return -1 if count < len(self.inputs.candidates) else None
        return 0 if nearest.is_same else nearest.direction

    def after_batches(self) -> None:
        """Try what was read when each of the last batches had ended, before the result was written."""
        tried = 0
        for end in self.search.ends:
            numbers = tuple(self._up_to(end))
            if numbers and numbers not in self.seen and tried < _BATCHES:
                tried += 1
                nearest = self._of(numbers)
                if nearest is not None and nearest.is_same:
                    return

    def best(self) -> tuple[list[int], Nearest | None]:
        numbers = min(self.seen, key=lambda each: _distance(self.seen[each]))
        return list(numbers), self.seen[numbers]

    def _of(self, numbers: tuple[int, ...]) -> Nearest | None:
        if numbers not in self.seen:
            self.seen[numbers] = self.search.nearest(self.inputs, numbers)
        return self.seen[numbers]

    def _up_to(self, end: Offsets) -> list[int]:
        topics = self.search.topics
        return [
            number
            for number, each in enumerate(self.inputs.candidates)
            if each.offset < end.get(topics[each.argument].name, {}).get(each.partition, 0)
        ]


def _distance(nearest: Nearest | None) -> float:
    return float("inf") if nearest is None else len(nearest.differs)


def first(numbers: Iterable[int]) -> list[int]:
    """As many candidates as are shown without a proof."""
    return list(numbers)[:SHOWN]
