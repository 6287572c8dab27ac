"""What a target holds, compared with what it should hold."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Compared(NamedTuple):
    """Counts of rows on both sides, and examples of those that differ; `waiting` may come yet."""

    expected: int
    found: int
    missing: int
    repeated: int
    unexpected: int
    examples: tuple[str, ...] = ()
    waiting: int = 0

    @classmethod
    def of(cls, counts: Sequence[int], examples: Iterable[str]) -> "Compared":
        """Make one of its five counts, in order, and the examples."""
        expected, found, missing, repeated, unexpected = counts
        return cls(expected, found, missing, repeated, unexpected, tuple(examples))

    def and_also(self, other: "Compared") -> "Compared":
        """Return the sum of two comparisons."""
        return Compared(
            self.expected + other.expected,
            self.found + other.found,
            self.missing + other.missing,
            self.repeated + other.repeated,
            self.unexpected + other.unexpected,
            self.examples + other.examples,
            self.waiting + other.waiting,
        )
