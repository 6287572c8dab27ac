"""The smallest part of some events that still has an outcome, found by leaving out more and more of them."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Holds = Callable[[Collection[int]], bool]


class Reduced(NamedTuple):
    """What is left; `minimal` if it was tried that none of it can be left out."""

    kept: list[int]
    minimal: bool


@dataclass
class Tries:
    """Tries of subsets, of which there may be so many; a subset that was tried before is free."""

    holds: Holds
    most: int
    made: int = 0
    _known: dict[frozenset[int], bool] = field(default_factory=dict)

    @property
    def are_over(self) -> bool:
        return self.made >= self.most

    def __call__(self, numbers: Iterable[int]) -> bool:
        """Whether the outcome still comes of these; False when there are no tries left."""
        wanted = frozenset(numbers)
        if wanted not in self._known:
            if self.are_over:
                return False
            self.made += 1
            self._known[wanted] = self.holds(wanted)
        return self._known[wanted]


def reduced(groups: Sequence[Sequence[int]], tries: Tries) -> Reduced:
    """Leave out whole groups, then single events, until without any of them the outcome is another.

    >>> needed = {3, 8}
    >>> reduced([range(5), range(5, 10)], Tries(lambda numbers: needed <= set(numbers), 50))
    Reduced(kept=[3, 8], minimal=True)

    An event that was left out together with others was not behind the outcome, unless they cancelled each
    other out; hence half of them are tried alone, too.
    """
    kept = [list(group) for group in groups]
    if len(kept) > 1:
        kept = _without(kept, _halves(range(len(kept))), tries, is_alike=False)
    single = [[number] for group in kept for number in group]
    left = _without(single, _halves(range(len(single))), tries, is_alike=True)
    while len(left) < len(single) and not tries.are_over:
        single = left  # what was needed before may not be now
        left = _without(single, [[place] for place in range(len(single))], tries, is_alike=True)
    return Reduced(sorted(number for [number] in left), minimal=not tries.are_over)


def _without(
    units: list[list[int]], runs: Iterable[Sequence[int]], tries: Tries, *, is_alike: bool
) -> list[list[int]]:
    """Leave out runs of units that make no difference, the longest ones first."""
    kept = dict(enumerate(units))
    runs = deque(runs)
    while runs and not tries.are_over:
        run = runs.popleft()
        if _make_no_difference(run, kept, tries, is_alike=is_alike):
            for place in run:
                del kept[place]
        elif len(run) > 1:
            runs.extend(_halves(run))
    return list(kept.values())


def _make_no_difference(
    run: Sequence[int], kept: dict[int, list[int]], tries: Tries, *, is_alike: bool
) -> bool:
    def holds_without(gone: Sequence[int]) -> bool:
        return tries(number for place, unit in kept.items() if place not in gone for number in unit)

    if len(run) == len(kept) or not holds_without(run):
        return False
    return not is_alike or len(run) == 1 or holds_without(run[::2])


def _halves(run: Sequence[int]) -> list[Sequence[int]]:
    middle = (len(run) + 1) // 2
    return [half for half in (run[:middle], run[middle:]) if half]
