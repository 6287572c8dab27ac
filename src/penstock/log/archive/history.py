"""History: what an archive holds of a topic, read partition by partition."""

from bisect import bisect_left
from collections.abc import Iterator

from penstock.errors import AuthorizationError
from penstock.log.archive.archive import Archive
from penstock.log.archive.declarations import Declarations
from penstock.log.archive.parquet import SegmentFile
from penstock.log.archive.rows import Row
from penstock.log.archive.segment import Part, Segment, cover, folder, reached_from
from penstock.log.archive.storage import Storage, open_storage
from penstock.log.broker import Broker
from penstock.settings import Settings


class History:
    """The segments of an archive: listed when they are asked for, as others come while it is read."""

    def __init__(self, archive: Archive, storage: Storage) -> None:
        self.archive, self.storage = archive, storage

    @classmethod
    def open(cls, archive: Archive, settings: Settings) -> "History":
        """Return the history that an archive holds."""
        return cls(archive, open_storage(archive.address, settings, archive.connection))

    def segments(self, partition: int) -> list[Segment]:
        """Return the segments of a partition, in order."""
        found = (Segment.parse(partition, name) for name in self.storage.names(folder(partition)))
        return sorted(each for each in found if each is not None)

    def first(self, partition: int) -> int | None:
        """Return the first offset that is archived, if any is."""
        found = self.segments(partition)
        return found[0].first if found else None

    def end(self, partition: int) -> int | None:
        """Return how far the archive reaches without a hole, if anything is archived."""
        found = self.segments(partition)
        return reached_from(found, found[0].first) if found else None

    def holds(self, partition: int, offset: int) -> bool:
        """Whether a segment has an offset in its range."""
        return any(each.holds(offset) for each in self.segments(partition))

    def parts(self, partition: int, start: int, end: int) -> list[Part]:
        """Return what is to be read for an offset range, as far as it is archived."""
        return cover(self.segments(partition), start, end)

    def file(self, segment: Segment) -> SegmentFile:
        """Open a segment's file."""
        return SegmentFile(self.storage.open(segment.path), segment.path)

    def read(self, partition: int, offset: int) -> tuple[Iterator[Row], int] | None:
        """Return the rows of one segment from an offset on, and where to go on; None if it holds none."""
        found = cover(self.segments(partition), offset)
        if not found:
            return None
        return self.file(found[0].segment).rows(offset), found[0].next

    def first_since(self, partition: int, timestamp: int) -> int | None:
        """Return the first offset that has a time, in milliseconds, or a later one."""
        segments = self.segments(partition)
        begin = bisect_left(segments, timestamp, key=lambda each: self.file(each).footer.latest)
        for each in segments[begin:]:
            file = self.file(each)
            if file.footer.newest >= timestamp:
                found = file.first_since(timestamp)
                if found is not None:
                    return found
        return None


def find_history(settings: Settings, topic: str) -> History | None:
    """Return what is archived of a topic, if it is; an archive of one that had its name is not its own."""
    try:
        archive = Declarations(settings).find(topic)
    except AuthorizationError:  # who may not see archives has what Kafka has
        return None
    if archive is None or Broker(settings).topic_ids([topic]).get(topic) != archive.topic_id:
        return None
    return History.open(archive, settings)
