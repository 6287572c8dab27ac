"""Deletion: what leaves Kafka, once it is archived, verified, old enough and read by every flow."""

import math
from collections.abc import Callable
from datetime import datetime

from penstock.archive.manifest import read_manifest
from penstock.archive.verified import faults
from penstock.errors import ArchiveError
from penstock.log import Broker, Groups
from penstock.log.archive.archive import Archive
from penstock.log.archive.history import History
from penstock.log.archive.segment import Segment, cover
from penstock.points import reach
from penstock.settings import Settings

_FLOWS = ("penstock.", "penstock:")  # what the groups of flows begin with: a flow can't read an archive


class Deletion:
    """Deletes the records of segments from Kafka; `before_delete` is called when it is about to."""

    def __init__(
        self,
        archive: Archive,
        settings: Settings,
        history: History,
        before_delete: Callable[[], None],
        report: Callable[[str], None],
    ) -> None:
        self._archive, self._settings, self._history = archive, settings, history
        self._before_delete, self._report = before_delete, report
        self._broker = Broker(settings)

    def run(self, now: datetime) -> int:
        """Delete what may be deleted; return how many offsets that were."""
        firsts = {number: first for number, (first, _) in self._broker.offsets(self._archive.topic).items()}
        old = {number: self._old(number, first, now) for number, first in firsts.items()}
        old = {number: some for number, some in old.items() if some}
        unread = self._unread() if old else {}
        before = {number: self._verified(number, some, unread) for number, some in old.items()}
        before = {number: offset for number, offset in before.items() if offset > firsts[number]}
        if before:
            self._before_delete()
            reach("archive.verified", self._archive.topic)
            self._broker.delete_records(self._archive.topic, before)
            reach("archive.deleted", self._archive.topic)
        return sum(offset - firsts[number] for number, offset in before.items())

    def _old(self, partition: int, first: int, now: datetime) -> list[Segment]:
        """The segments from Kafka's beginning on of which every record is older than is kept."""
        found, limit = list[Segment](), (now - self._archive.kept).timestamp() * 1000
        for part in cover(self._history.segments(partition), first):
            if self._newest(part.segment) > limit:
                break
            found.append(part.segment)
        return found

    def _newest(self, segment: Segment) -> float:
        """When its newest record was written; one that is dated ahead counts as written when archived."""
        manifest = read_manifest(self._history, segment)
        return min(manifest.newest, manifest.archived) if manifest is not None else math.inf

    def _verified(self, partition: int, segments: list[Segment], unread: dict[int, tuple[int, str]]) -> int:
        """Return up to where a partition may be deleted: each file is read once more before."""
        reached = 0
        for each in segments:
            at, group = unread.get(partition, (each.next, ""))
            if at < each.next:
                self._report(f"offsets from {at} on of partition {partition} stay in Kafka for {group}")
                break
            wrong = faults(self._history, each)
            if wrong:
                raise ArchiveError(
                    f"segment {each.path} is damaged, and Kafka keeps its records: {wrong[0]}",
                    hint="remove the file and its manifest, and the archive writes them again from Kafka",
                )
            reached = each.next
        return reached

    def _unread(self) -> dict[int, tuple[int, str]]:
        """How far each partition was read by the flow that is furthest behind, and that flow's group."""
        found, groups = dict[int, tuple[int, str]](), Groups(self._settings)
        for group in (each.group for each in groups.all() if each.group.startswith(_FLOWS)):
            for partition, offset in groups.positions(group).get(self._archive.topic, {}).items():
                found[partition] = min(found.get(partition, (offset, group)), (offset, group))
        return found
