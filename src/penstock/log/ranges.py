"""Offset ranges: the parts of a topic's partitions of which something is known."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Range = tuple[int, int]  # the first offset, and the one after the last
Ranges = Mapping[int, Range]  # by partition


@dataclass(frozen=True)
class OffsetRanges:
    """Ranges of each partition, in order and apart from each other.

    >>> seen = OffsetRanges().adding({0: (0, 10)}).adding({0: (20, 30)})
    >>> seen.lacking({0: (5, 30), 1: (0, 0)})
    {0: (10, 20)}
    >>> seen.adding({0: (10, 20)}).partitions
    {0: ((0, 30),)}
    """

    partitions: Mapping[int, tuple[Range, ...]] = field(default_factory=dict)

    def adding(self, ranges: Ranges) -> "OffsetRanges":
        """Return these ranges and others as one."""
        known = dict(self.partitions)
        for partition, (first, end) in ranges.items():
            if first < end:
                known[partition] = tuple(_merged([*known.get(partition, ()), (first, end)]))
        return OffsetRanges(known)

    def uniting(self, other: "OffsetRanges") -> "OffsetRanges":
        """Return the ranges of both as one."""
        united = self
        for partition, ranges in other.partitions.items():
            for each in ranges:
                united = united.adding({partition: each})
        return united

    def meets(self, ranges: Ranges) -> bool:
        """Say whether any of some ranges is known in part."""
        return any(
            first < stop and start < end
            for partition, (start, end) in ranges.items()
            for first, stop in self.partitions.get(partition, ())
        )

    def lacking(self, ranges: Ranges) -> dict[int, Range]:
        """Return the least range of each partition that holds all that is not known of some ranges."""
        found = {}
        for partition, (first, end) in ranges.items():
            gaps = list(_gaps(self.partitions.get(partition, ()), first, end))
            if gaps:
                found[partition] = (gaps[0][0], gaps[-1][1])
        return found

    def holds(self, partition: int, offset: int) -> bool:
        """Say whether an offset is in a range."""
        return any(first <= offset < end for first, end in self.partitions.get(partition, ()))


def _merged(ranges: list[Range]) -> Iterable[Range]:
    ranges.sort()
    last = ranges[0]
    for each in ranges[1:]:
        if each[0] <= last[1]:
            last = (last[0], max(last[1], each[1]))
        else:
            yield last
            last = each
    yield last


def _gaps(known: Iterable[Range], first: int, end: int) -> Iterable[Range]:
    for start, stop in known:
        if first < min(start, end):
            yield first, min(start, end)
        first = max(first, stop)
    if first < end:
        yield first, end
