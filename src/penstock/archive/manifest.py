"""Manifests: a small file beside each segment, which says what must be in it."""

import hashlib
from dataclasses import dataclass
from typing import Self

import msgspec

from penstock.log.archive.checksum import Checksum
from penstock.log.archive.history import History
from penstock.log.archive.parquet import Footer
from penstock.log.archive.segment import Segment


@dataclass(frozen=True)
class Manifest:
    """A segment's checksums: of its records, of the file's bytes, and of all records up to its end."""

    topic: str
    topic_id: str
    partition: int
    first: int
    next: int
    checksum: str
    total: str
    sha256: str
    size: int
    oldest: int
    newest: int
    archived: int  # when, in milliseconds

    @classmethod
    def of(cls, footer: Footer, content: bytes, before: Checksum, now: float) -> Self:
        """Return the manifest of a file, which follows records of a checksum."""
        segment = footer.segment
        return cls(
            footer.topic,
            footer.topic_id,
            *(segment.partition, segment.first, segment.next),
            str(footer.checksum),
            str(before.adding(footer.checksum)),
            hashlib.sha256(content).hexdigest(),
            len(content),
            footer.oldest,
            footer.newest,
            int(now * 1000),
        )

    def to_json(self) -> bytes:
        return msgspec.json.format(msgspec.json.encode(self))


def read_manifest(history: History, segment: Segment) -> Manifest | None:
    """Return the manifest of a segment; None if it has none, or one that can't be decoded."""
    found = history.storage.read(segment.manifest)
    try:
        return None if found is None else msgspec.json.decode(found, type=Manifest)
    except msgspec.DecodeError:
        return None


def total_up_to(history: History, partition: int, offset: int) -> Checksum:
    """Return the checksum of all archived records of a partition before an offset."""
    before = [each for each in history.segments(partition) if each.next <= offset]
    last = max(before, key=lambda each: each.next, default=None)
    manifest = read_manifest(history, last) if last is not None else None
    return Checksum.parse(manifest.total) if manifest is not None else Checksum()
