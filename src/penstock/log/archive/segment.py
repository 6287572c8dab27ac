"""Segments: the files of an archive, each with an offset range of one partition."""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

_NAME = re.compile(r"(\d{20})-(\d{20})\.parquet")
MANIFEST = ".json"


@dataclass(frozen=True, order=True)
class Segment:
    """An offset range of a partition; `next` is the offset after it. What it lacks was never committed.

    >>> Segment(2, 0, 1000).path
    'partition=2/00000000000000000000-00000000000000001000.parquet'
    """

    partition: int
    first: int
    next: int

    @classmethod
    def parse(cls, partition: int, name: str) -> Self | None:
        """Return the segment of a file's name; None if the file is something else."""
        found = _NAME.fullmatch(name)
        return cls(partition, int(found[1]), int(found[2])) if found else None

    @property
    def path(self) -> str:
        """Where it is below the folder of its topic."""
        return f"{folder(self.partition)}/{self.first:020d}-{self.next:020d}.parquet"

    @property
    def manifest(self) -> str:
        """Where its manifest is, beside it."""
        return self.path.removesuffix(".parquet") + MANIFEST

    def holds(self, offset: int) -> bool:
        return self.first <= offset < self.next

    def __str__(self) -> str:
        return f"[{self.partition}] {self.first}–{self.next - 1}"


def folder(partition: int) -> str:
    """The folder of a partition, below that of its topic."""
    return f"partition={partition}"


@dataclass(frozen=True)
class Part:
    """What is read of a segment: from one offset up to another."""

    segment: Segment
    first: int
    next: int


def cover(segments: Iterable[Segment], start: int, end: int | None = None) -> list[Part]:
    """Return the parts that hold a partition's offsets from `start` on, each once, up to `end` or a hole.

    >>> two = [Segment(0, 0, 100), Segment(0, 50, 200), Segment(0, 300, 400)]
    >>> [(each.first, each.next) for each in cover(two, 10)]
    [(10, 100), (100, 200)]

    Segments may overlap, as where two processes have archived, or small ones were merged: they hold the same
    records, and the one that reaches furthest is read.
    """
    found, at, left = list[Part](), start, deque(sorted(segments))
    furthest: Segment | None = None
    while end is None or at < end:
        while left and left[0].first <= at:
            each = left.popleft()
            furthest = each if furthest is None or each.next > furthest.next else furthest
        if furthest is None or furthest.next <= at:
            break
        stop = furthest.next if end is None else min(furthest.next, end)
        found.append(Part(furthest, at, stop))
        at = stop
    return found


def reached_from(segments: Iterable[Segment], start: int) -> int:
    """Return how far a partition is held from an offset on without a hole.

    >>> reached_from([Segment(0, 0, 100), Segment(0, 100, 150), Segment(0, 200, 300)], 0)
    150
    """
    at = start
    for each in sorted(segments):
        if each.first <= at:
            at = max(at, each.next)
    return at


def gaps(segments: Iterable[Segment], start: int, end: int) -> list[tuple[int, int]]:
    """Return what of an offset range of a partition no segment holds.

    >>> gaps([Segment(0, 0, 100), Segment(0, 200, 300)], 0, 350)
    [(100, 200), (300, 350)]
    """
    found, at = list[tuple[int, int]](), start
    for each in sorted(segments):
        if at < min(each.first, end):
            found.append((at, min(each.first, end)))
        at = max(at, each.next)
    return [*found, (at, end)] if at < end else found
