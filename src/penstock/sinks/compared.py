"""What a target holds, compared with what it should hold."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Compared(NamedTuple):
    """Counts of rows on both sides, and examples of those that differ."""

    expected: int
    found: int
    missing: int
    repeated: int
    unexpected: int
    examples: tuple[str, ...] = ()

    @classmethod
    def of(cls, counts: Sequence[int], examples: Iterable[str]) -> "Compared":
        """Make one of its five counts, in order, and the examples."""
        expected, found, missing, repeated, unexpected = counts
        return cls(expected, found, missing, repeated, unexpected, tuple(examples))
