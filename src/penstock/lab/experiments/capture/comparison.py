"""The copies beside the table: which rows differ now, and for how long they have been out of date."""

from collections.abc import Mapping
from dataclasses import dataclass

Versions = Mapping[int, int]
Table = Mapping[int, tuple[int, float]]  # by row: its version, and the seconds since it was changed


@dataclass(frozen=True)
class Comparison:
    """What a reader of a copy finds where it is not as the table is.

    >>> Comparison.of({1: (7, 5.0), 2: (3, 0.1)}, {1: 6, 2: 3})
    Comparison(differing={1: 5.0})
    """

    differing: Mapping[int, float]

    @classmethod
    def of(cls, table: Table, copy: Versions) -> "Comparison":
        return cls({row: age for row, (version, age) in table.items() if copy.get(row) != version})

    def figures(self, name: str) -> dict[str, float | int]:
        stale = max(self.differing.values(), default=0.0)
        return {f"{name}_differ": len(self.differing), f"{name}_stale": round(stale, 1)}
