"""Archives as values: which topic goes where, and how long Kafka keeps what is there."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

import msgspec

from penstock.durations import duration
from penstock.errors import ArchiveError
from penstock.log.archive.segment import Segment
from penstock.log.ranges import Range
from penstock.log.topic import check_name

_S3 = "s3://"


@dataclass(frozen=True)
class Archive:
    """A topic's archive.

    >>> Archive("orders", "/srv/archive", topic_id="u1").folder
    'orders/id-u1'

    `to` is a folder or s3://bucket/prefix, reached by a `connection` of the settings. Kafka keeps what was
    archived for as long as `keep`; `every` is how often the archive is brought up to date. A segment has at
    most so many `records`, and about as many bytes as `size` says. `begins` is where Kafka's log began when
    the archive was added; `lost` are ranges that Kafka deleted before they were archived, and that somebody
    has accepted.
    """

    topic: str
    to: str
    topic_id: str
    connection: str | None = None
    keep: str = "7 days"
    every: str = "10 minutes"
    records: int = 100_000
    size: int = 64 * 1024 * 1024
    begins: Mapping[int, int] = field(default_factory=dict)
    lost: Mapping[int, tuple[Range, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.topic)
        if not self.to.startswith(_S3) and not Path(self.to).is_absolute():
            raise ArchiveError(
                f"{self.to!r} is neither a folder's whole path nor an s3:// address",
                hint="every reader has to find it: write /srv/archive or s3://bucket/prefix",
            )
        if self.to.startswith(_S3) and not self.to.removeprefix(_S3).strip("/"):
            raise ArchiveError(f"{self.to!r} names no bucket", hint="write s3://bucket/prefix")
        if self.connection is not None and not self.to.startswith(_S3):
            raise ArchiveError(
                f"a folder needs no connection, and {self.connection!r} is given",
                hint="leave it out, or archive to s3://bucket/prefix",
            )
        if self.records < 1 or self.size < 1:
            raise ArchiveError("a segment has at least one record and one byte")
        duration(self.keep, zero=True)
        duration(self.every)

    @property
    def folder(self) -> str:
        """Its files' folder below `to`; a topic that was made again has another one."""
        return f"{self.topic}/id-{self.topic_id}"

    @property
    def address(self) -> str:
        return f"{self.to.rstrip('/')}/{self.folder}"

    @property
    def kept(self) -> timedelta:
        return duration(self.keep, zero=True)

    def begin(self, partition: int) -> int:
        """Where a partition's archive begins; one that was added later begins at 0."""
        return self.begins.get(partition, 0)

    def accepted(self, partition: int) -> list[Segment]:
        """The ranges of a partition that are lost, and known to be."""
        return [Segment(partition, *each) for each in self.lost.get(partition, ())]

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        return msgspec.json.decode(text, type=cls)
