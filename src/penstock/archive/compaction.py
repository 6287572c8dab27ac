"""Compaction: small segments that follow each other become one, and are removed when nobody reads them."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from penstock.archive.draft import Draft
from penstock.archive.manifest import read_manifest
from penstock.archive.verified import faults
from penstock.errors import ArchiveError
from penstock.log.archive.archive import Archive
from penstock.log.archive.checksum import Checksum
from penstock.log.archive.history import History
from penstock.log.archive.segment import Segment
from penstock.points import reach

Publish = Callable[[int, Draft, int], None]
MOST = 8  # small segments that may follow each other
_GRACE = timedelta(days=1)  # for which a reader may hold on to the files that it has listed


class Compaction:
    """Merges the segments of an archive; `publish` makes a segment of a draft and the offset behind it.

    The new one holds what the old ones hold: until these are removed, a record is in two files, and is read
    once. A kill leaves the old ones, or both.
    """

    def __init__(self, archive: Archive, history: History, publish: Publish) -> None:
        self._archive, self._history, self._publish = archive, history, publish

    def run(self, partition: int, now: datetime) -> int:
        """Merge what is small, and remove what was merged long ago; return how many were merged."""
        segments = self._history.segments(partition)
        old = superseded(segments)
        for each, other in old.items():
            self._remove_if_old(each, other, now)
        merged = 0
        for group in small_ones([each for each in segments if each not in old], self._archive.records):
            merged += self._merge(partition, group)
        return merged

    def _merge(self, partition: int, group: Sequence[Segment]) -> int:
        """Make one segment of as many of a group as fit into it; return how many."""
        draft, expected, taken = self._draft(group[0].first), Checksum(), list[Segment]()
        for each in group:
            if draft.is_full:
                break
            expected = expected.adding(self._checksum(each))
            for row in self._history.file(each).rows():
                draft.add(row)
            taken.append(each)
        if len(taken) < 2:
            return 0
        if Checksum.of(partition, draft.rows) != expected:
            raise ArchiveError(
                f"segments {taken[0]} to {taken[-1]} do not hold what their manifests say",
                hint=f"they are not merged: run `penstock archive check {self._archive.topic}`",
            )
        self._publish(partition, draft, taken[-1].next)
        return len(taken)

    def _checksum(self, segment: Segment) -> Checksum:
        manifest = read_manifest(self._history, segment)
        return Checksum() if manifest is None else Checksum.parse(manifest.checksum)

    def _draft(self, first: int) -> Draft:
        return Draft(first, self._archive.records, self._archive.size)

    def _remove_if_old(self, segment: Segment, other: Segment, now: datetime) -> None:
        """Remove a segment whose records another one has held for long; that one is read once more before."""
        manifest = read_manifest(self._history, other)
        limit = (now - _GRACE).timestamp() * 1000
        if manifest is not None and manifest.archived < limit and not faults(self._history, other):
            self._history.storage.remove(segment.manifest)
            reach("archive.removing", self._archive.topic)
            self._history.storage.remove(segment.path)


def small_ones(segments: Sequence[Segment], records: int, most: int = MOST) -> Iterator[list[Segment]]:
    """Yield segments that follow each other, are less than half full, and too many, or enough for a full one.

    >>> few = [Segment(0, 0, 90), *(Segment(0, at, at + 10) for at in range(90, 130, 10))]
    >>> [len(each) for each in small_ones(few, 100, most=3)], list(small_ones(few, 100))
    ([4], [])
    """
    group = list[Segment]()
    for each in [*sorted(segments), None]:
        fits = each is not None and each.next - each.first <= records // 2
        if group and not (fits and each is not None and each.first == group[-1].next):
            if len(group) > most or group[-1].next - group[0].first >= records:
                yield group
            group = []
        if fits and each is not None:
            group.append(each)


def superseded(segments: Sequence[Segment]) -> dict[Segment, Segment]:
    """Return the segments whose whole range another one holds, each with that one.

    >>> three = [Segment(0, 0, 100), Segment(0, 0, 200), Segment(0, 150, 300)]
    >>> superseded(three)
    {Segment(partition=0, first=0, next=100): Segment(partition=0, first=0, next=200)}
    """
    found, furthest = dict[Segment, Segment](), None
    for each in sorted(segments, key=lambda each: (each.first, -each.next)):
        if furthest is not None and each.next <= furthest.next:
            found[each] = furthest
        else:
            furthest = each
    return found
