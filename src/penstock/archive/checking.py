"""Checking an archive: every file read, every range accounted for, and compared with what Kafka still has."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from penstock.archive.manifest import read_manifest
from penstock.archive.verified import faults
from penstock.errors import ArchiveError
from penstock.log import Broker
from penstock.log.archive.archive import Archive
from penstock.log.archive.checksum import Checksum
from penstock.log.archive.declarations import Declarations
from penstock.log.archive.history import History
from penstock.log.archive.rows import row_of
from penstock.log.archive.segment import Segment, cover, gaps
from penstock.log.cursor import Cursor
from penstock.settings import Settings

Kind = Literal["damaged", "hole", "different", "note"]


@dataclass(frozen=True)
class Finding:
    """Something about an offset range; a note is nothing to worry about."""

    kind: Kind
    partition: int
    first: int
    next: int
    what: str

    @property
    def is_fault(self) -> bool:
        return self.kind != "note"


@dataclass
class Checked:
    """What a partition's archive holds: its range, how much of it, the checksum, and what is wrong.

    `compared` is how many records are in Kafka, too, and were found to be the same.
    """

    partition: int
    first: int = 0
    next: int = 0
    segments: int = 0
    checksum: Checksum = field(default_factory=Checksum)
    compared: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not any(each.is_fault for each in self.findings)


def check(
    topic: str, settings: Settings, *, progress: Callable[[Segment], None] = lambda _: None
) -> list[Checked]:
    """Check the archive of a topic, partition by partition, from the files alone and against Kafka."""
    archive = Declarations(settings).get(topic)
    broker = Broker(settings)
    if broker.topic_ids([topic]).get(topic) != archive.topic_id:
        raise ArchiveError(
            f"topic {topic!r} was deleted and made again: the archive is of the one with the id "
            f"{archive.topic_id}",
            hint=f"its files are in {archive.address}; `penstock archive add` archives the new topic",
        )
    work = _Check(archive, settings, History.open(archive, settings), progress)
    return [work.partition(number, *each) for number, each in broker.offsets(topic).items()]


@dataclass(frozen=True)
class _Check:
    archive: Archive
    settings: Settings
    history: History
    progress: Callable[[Segment], None]

    def partition(self, number: int, kept: int, end: int) -> Checked:
        """Check a partition; `kept` is where Kafka's log begins, and `end` where it ends."""
        segments = self.history.segments(number)
        begin = self.archive.begin(number)
        made = Checked(number, begin, max((each.next for each in segments), default=begin), len(segments))
        whole = [each for each in segments if self._is_whole(each, made)]
        self._look_for_holes(segments, kept, made)
        for part in cover(whole, begin):
            self._add_up(part.segment, part.first, part.next, made)
        for each in whole:
            if each.next > kept:
                self._compare(each, max(kept, each.first), min(each.next, end), made)
        return made

    def _is_whole(self, segment: Segment, made: Checked) -> bool:
        self.progress(segment)
        wrong = faults(self.history, segment)
        made.findings += [_finding("damaged", segment, f"{segment.path}: {each}") for each in wrong]
        return not wrong

    def _look_for_holes(self, segments: list[Segment], kept: int, made: Checked) -> None:
        """What neither the archive nor Kafka has; and what two segments have, which is read once."""
        accepted = self.archive.accepted(made.partition)
        for first, end in gaps([*segments, *accepted], made.first, max(kept, made.next)):
            if first < kept:
                made.findings.append(Finding("hole", made.partition, first, min(end, kept), "nobody has it"))
            else:
                made.findings.append(Finding("note", made.partition, first, end, "only Kafka has it, still"))
        made.findings += [_finding("note", each, "lost, and accepted") for each in accepted]
        reached = made.first
        for each in segments:
            if each.first < min(reached, each.next):
                shared = Segment(made.partition, each.first, min(reached, each.next))
                made.findings.append(_finding("note", shared, "two segments hold it: it is read once"))
            reached = max(reached, each.next)

    def _add_up(self, segment: Segment, first: int, end: int, made: Checked) -> None:
        """Add a part of a segment to the partition's checksum: a whole one has its own in its manifest."""
        manifest = read_manifest(self.history, segment)
        if manifest is not None and (first, end) == (segment.first, segment.next):
            found = Checksum.parse(manifest.checksum)
        else:
            found = Checksum.of(segment.partition, self.history.file(segment).rows(first, end))
        made.checksum = made.checksum.adding(found)

    def _compare(self, segment: Segment, first: int, end: int, made: Checked) -> None:
        """Compare what a segment holds with what Kafka has of the same offsets."""
        archived = Checksum.of(segment.partition, self.history.file(segment).rows(first, end))
        with Cursor(self.archive.topic, self.settings, [segment.partition]) as cursor:
            cursor.go_to({segment.partition: first})
            rows = map(row_of, cursor.read_to({segment.partition: end}))
            found = Checksum.of(segment.partition, rows)
        if found == archived:
            made.compared += found.count
        else:
            what = f"the archive has {archived.count:,} records, Kafka {found.count:,}, or others"
            made.findings.append(Finding("different", segment.partition, first, end, what))


def _finding(kind: Kind, segment: Segment, what: str) -> Finding:
    return Finding(kind, segment.partition, segment.first, segment.next, what)
