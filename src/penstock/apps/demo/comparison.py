"""Results beside the truth: how many are lost, duplicate or wrong."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import eq
from typing import Self, TypeVar

from penstock.apps.demo.report import Figures

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class Comparison:
    """Counted, never assumed: `due` results, of which some are `lost`, `duplicate`, `wrong` or not due.

    >>> Comparison.of({"a": 1, "b": 2, "c": 3}, [("a", 1), ("b", 2), ("b", 7), ("d", 4)])
    Comparison(due=3, lost=1, duplicate=1, wrong=1, unexpected=1)
    """

    due: int
    lost: int
    duplicate: int
    wrong: int
    unexpected: int

    @classmethod
    def of(
        cls, truth: Mapping[K, T], results: Iterable[tuple[K, V]], same: Callable[[T, V], bool] = eq
    ) -> Self:
        """Compare results with what is due, by their keys; of a duplicate, the last result counts.

        `same` says whether a result is as the truth has it; both may be of different types.
        """
        found, count = dict[K, V](), 0
        for key, value in results:
            found[key] = value
            count += 1
        wrong = sum(key in truth and not same(truth[key], value) for key, value in found.items())
        return cls(
            len(truth), len(truth.keys() - found), count - len(found), wrong, len(found.keys() - truth)
        )

    @property
    def problems(self) -> list[str]:
        """What is not as the truth has it."""
        counts = {
            "lost": self.lost, "duplicate": self.duplicate, "wrong": self.wrong, "not due": self.unexpected,
        }  # fmt: skip
        found = [f"{count:,} of {self.due:,} results {name}" for name, count in counts.items() if count]
        return found if self.due else ["nothing was due: there is nothing to compare"]

    def figures(self, what: str) -> Figures:
        """The same as a line of a report; `what` the results are."""
        others = f"{self.duplicate:,} duplicate, {self.wrong:,} wrong, {self.unexpected:,} not due"
        return [(what, f"{self.due:,}", f"due; {self.lost:,} lost, {others}")]
