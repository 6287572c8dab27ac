"""The archiver: moves a topic's records into segments, and deletes from Kafka what they hold for sure."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.archive.compaction import Compaction
from penstock.archive.deletion import Deletion
from penstock.archive.draft import Draft
from penstock.archive.fence import Fence
from penstock.archive.manifest import Manifest, total_up_to
from penstock.errors import ArchiveError, StorageError, TopicError
from penstock.log import Broker
from penstock.log.archive.archive import Archive
from penstock.log.archive.declarations import State
from penstock.log.archive.history import History
from penstock.log.archive.parquet import encoded, footer_of
from penstock.log.archive.rows import row_of
from penstock.log.archive.segment import Segment, folder, gaps, reached_from
from penstock.log.archive.storage import TEMPORARY
from penstock.log.cursor import Cursor
from penstock.points import reach
from penstock.settings import Settings

IsStopped = Callable[[], bool]


@dataclass(frozen=True)
class Moved:
    """What one round has done: records archived, and offsets that were deleted from Kafka."""

    records: int = 0
    segments: int = 0
    deleted: int = 0
    merged: int = 0


class Archiver:
    """Archives one topic, as the only process that does.

        archiver = Archiver(Declarations(settings).get("orders"), settings)
        archiver.run_once()

    Killed at any moment, it leaves whole segments; the next one goes on behind them.
    """

    def __init__(
        self,
        archive: Archive,
        settings: Settings,
        *,
        is_stopped: IsStopped = lambda: False,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._archive, self._settings = archive, settings
        self._is_stopped, self._report = is_stopped, report
        self._broker, self._history = Broker(settings), History.open(archive, settings)
        self._refuse_other_topic()
        self._fence = Fence(settings, archive.topic)
        self._reached: dict[int, int] = {}

    def run_once(self, now: datetime | None = None) -> Moved:
        """Archive all that is committed by now, delete what is archived and old, and merge small segments."""
        self._refuse_other_topic()
        moment = now or datetime.now(UTC)
        moved = [self._archive_partition(each) for each in self._partitions() if not self._is_stopped()]
        deleted = 0
        if not self._is_stopped():
            deletion = Deletion(
                self._archive, self._settings, self._history, self._note_deletion, self._report
            )
            deleted = deletion.run(moment)
        compaction = Compaction(self._archive, self._history, self._publish)
        merged = [compaction.run(each, moment) for each in self._partitions() if not self._is_stopped()]
        return Moved(sum(each[0] for each in moved), sum(each[1] for each in moved), deleted, sum(merged))

    def note(self, state: str, error: str = "") -> None:
        """Write down how the archive is."""
        self._fence.note(State.now(state, self._reached, error))

    def _note_deletion(self) -> None:
        self._refuse_other_topic()
        self.note("deleting")

    def _partitions(self) -> list[int]:
        return sorted(self._broker.offsets(self._archive.topic))

    def _archive_partition(self, partition: int) -> tuple[int, int]:
        """Write segments for all committed records that are in none yet; return how many of each."""
        self._see_to_unfinished(partition)
        end = self._broker.committed_end(self._archive.topic)[partition]
        known = [*self._history.segments(partition), *self._archive.accepted(partition)]
        begin = self._archive.begin(partition)
        self._reached[partition] = reached_from(known, begin)
        records = segments = 0
        for gap in gaps(known, begin, end):
            self._refuse_lost(partition, *gap)
            for draft, following in self._drafts(partition, *gap):
                self._publish(partition, draft, following)
                records, segments = records + len(draft.rows), segments + 1
        return records, segments

    def _refuse_lost(self, partition: int, first: int, end: int) -> None:
        kept = self._broker.offsets(self._archive.topic)[partition][0]
        if first < kept:
            raise ArchiveError(
                f"offsets {first} to {min(kept, end) - 1} of {self._archive.topic}[{partition}] were deleted "
                "from Kafka before they were archived",
                hint="see that retention.ms is -1; bring lost files back from a copy, or go on without those "
                "records: `penstock archive run --skip-lost`",
            )

    def _drafts(self, partition: int, start: int, end: int) -> Iterator[tuple[Draft, int]]:
        """Yield full drafts, and what is left at the end, each with the offset that comes next.

        Offsets without a record, as of aborted transactions, belong to the draft whose records they follow,
        or to one that has none.
        """
        draft = self._draft(start)
        with Cursor(self._archive.topic, self._settings, [partition], group="penstock.archive") as cursor:
            cursor.go_to({partition: start})
            for messages in cursor.chunks_to({partition: end}):
                for message in messages:
                    if draft.is_full:
                        yield draft, message.offset()
                        draft = self._draft(message.offset())
                    draft.add(row_of(message))
                if self._is_stopped():
                    return
        yield draft, end

    def _draft(self, first: int) -> Draft:
        return Draft(first, self._archive.records, self._archive.size)

    def _publish(self, partition: int, draft: Draft, following: int) -> None:
        """Make a segment: its name appears when all of it is stored, and its manifest after that."""
        archive, segment = self._archive, Segment(partition, draft.first, following)
        latest = self._latest_before(segment)
        footer = footer_of(archive.topic, archive.topic_id, segment, draft.rows, latest)
        content = encoded(footer, draft.rows)
        before = total_up_to(self._history, partition, draft.first)
        manifest = Manifest.of(footer, content, before, time.time())
        reach("archive.read", archive.topic)
        self._refuse_other_topic()  # since it was read, another topic may have the name
        self.note("archiving")
        reach("archive.fenced", archive.topic)
        self._history.storage.put(segment.path, content)
        reach("archive.published", archive.topic)
        self._history.storage.put(segment.manifest, manifest.to_json())
        self._reached[partition] = max(following, self._reached.get(partition, 0))
        reach("archive.noted", archive.topic)

    def _latest_before(self, segment: Segment) -> int:
        """The newest time in the segments before one."""
        before = [each for each in self._history.segments(segment.partition) if each < segment]
        return self._history.file(before[-1]).footer.latest if before else 0

    def _see_to_unfinished(self, partition: int) -> None:
        """Remove what a process that was killed has left half written; write manifests that it has not."""
        storage, home = self._history.storage, folder(partition)
        names = set(storage.names(home))
        for name in names:
            if name.endswith(TEMPORARY):
                with suppress(StorageError):  # another one has removed it
                    storage.remove(f"{home}/{name}")
        for each in self._history.segments(partition):
            if each.manifest.removeprefix(f"{home}/") not in names:
                self._complete(each)

    def _complete(self, segment: Segment) -> None:
        content = self._history.storage.read(segment.path) or b""
        footer = self._history.file(segment).footer
        before = total_up_to(self._history, segment.partition, segment.first)
        manifest = Manifest.of(footer, content, before, time.time())
        self._history.storage.put(segment.manifest, manifest.to_json())

    def _refuse_other_topic(self) -> None:
        """Refuse a topic that was made again: its records are not those of the archive."""
        now = self._broker.topic_ids([self._archive.topic]).get(self._archive.topic)
        if now != self._archive.topic_id:
            raise TopicError(
                f"topic {self._archive.topic!r} was deleted and made again: the archive is of the one with "
                f"the id {self._archive.topic_id}, now it is {now}",
                hint=f"its files stay; `penstock archive add {self._archive.topic} --to {self._archive.to}` "
                "archives the new one beside them",
            )
