"""A segment as a Parquet file: written sorted by key and time, read in the order of the log."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import ArchiveError
from penstock.log.archive.checksum import Checksum
from penstock.log.archive.rows import Headers, Row
from penstock.log.archive.segment import Segment

_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", _HEADERS),
    ]
)
_ORDER = [("key", "ascending"), ("timestamp", "ascending"), ("offset", "ascending")]
_ROW_GROUP = 8_192
_MARK = "penstock."
_TURN = 1_000  # rows that become Python's at a time


@dataclass(frozen=True)
class Footer:
    """What a file says of itself: of which topic it is, the range it covers, its checksum and its times."""

    topic: str
    topic_id: str
    segment: Segment
    checksum: Checksum
    oldest: int  # milliseconds, as the newest
    newest: int
    latest: int  # the newest of all segments up to this one, by which a moment is searched for

    def to_metadata(self) -> dict[str, str]:
        named = {
            "topic": self.topic,
            "topic-id": self.topic_id,
            "partition": self.segment.partition,
            "first": self.segment.first,
            "next": self.segment.next,
            "checksum": self.checksum,
            "oldest": self.oldest,
            "newest": self.newest,
            "latest": self.latest,
        }
        return {_MARK + name: str(value) for name, value in named.items()}

    @classmethod
    def from_metadata(cls, metadata: dict[bytes, bytes]) -> "Footer":
        found = {name.decode(): value.decode() for name, value in metadata.items()}
        names = ("partition", "first", "next", "oldest", "newest", "latest")
        partition, first, following, *times = (int(found[_MARK + name]) for name in names)
        return cls(
            found[_MARK + "topic"],
            found[_MARK + "topic-id"],
            Segment(partition, first, following),
            Checksum.parse(found[_MARK + "checksum"]),
            *times,
        )


def footer_of(topic: str, topic_id: str, segment: Segment, rows: Sequence[Row], latest: int = 0) -> Footer:
    """Return what the file of some rows is to say of itself; `latest` is that of the segment before it."""
    times = [row.timestamp for row in rows]
    oldest, newest = min(times, default=0), max(times, default=0)
    checksum = Checksum.of(segment.partition, rows)
    return Footer(topic, topic_id, segment, checksum, oldest, newest, max(newest, latest))


def encoded(footer: Footer, rows: Sequence[Row]) -> bytes:
    """Return the file of some rows."""
    columns = {
        "partition": pa.repeat(pa.scalar(footer.segment.partition, pa.int32()), len(rows)),
        "offset": [row.offset for row in rows],
        "timestamp": pa.array([row.timestamp for row in rows], pa.int64()).cast(SCHEMA.field(2).type),
        "timestampType": [row.kind for row in rows],
        "key": [row.key for row in rows],
        "value": [row.value for row in rows],
        "headers": [_pairs(row.headers) for row in rows],
    }
    return encoded_table(footer, pa.table(columns, schema=SCHEMA))


def encoded_table(footer: Footer, table: pa.Table) -> bytes:
    """Return a file: rows sorted by key and time, in small groups, so that a key is found by statistics."""
    ordered = table.replace_schema_metadata(footer.to_metadata()).sort_by(_ORDER)
    sink = pa.BufferOutputStream()
    pq.write_table(ordered, sink, compression="zstd", row_group_size=_ROW_GROUP, write_statistics=True)
    return cast(bytes, sink.getvalue().to_pybytes())


def _pairs(headers: Headers | None) -> list[dict[str, Any]] | None:
    return None if headers is None else [{"key": name, "value": value} for name, value in headers]


class SegmentFile:
    """The file of a segment, open to be read."""

    def __init__(self, source: pa.NativeFile | pa.Buffer, name: str) -> None:
        self._name = name
        try:
            self._file = pq.ParquetFile(source)
            self.footer = Footer.from_metadata(self._file.schema_arrow.metadata or {})
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            raise self._damaged(error) from error

    def rows(self, first: int = 0, end: int | None = None) -> Iterator[Row]:
        """Yield the rows from an offset on, up to another, in the order of the log."""
        try:
            table = self._file.read()
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(error) from error
        offsets = table.column("offset")
        wanted = pc.greater_equal(offsets, first)
        if end is not None:
            wanted = pc.and_(wanted, pc.less(offsets, end))
        yield from rows_of(table.filter(wanted).sort_by("offset"))

    def first_since(self, timestamp: int) -> int | None:
        """Return the first offset that has a time or a later one."""
        table = self._file.read(columns=["offset", "timestamp"])
        late = pc.greater_equal(table.column("timestamp").cast(pa.int64()), timestamp)
        found = pc.min(table.filter(late).column("offset")).as_py()
        return None if found is None else int(found)

    def checksum(self) -> Checksum:
        """Compute the checksum from the rows that are there."""
        return Checksum.of(self.footer.segment.partition, self.rows())

    def _damaged(self, error: Exception) -> ArchiveError:
        return ArchiveError(
            f"the archive's file {self._name} can't be read: {error}",
            hint="`penstock archive check` says what is damaged; bring the file back from a copy",
        )


def rows_of(table: pa.Table) -> Iterator[Row]:
    """Yield rows as Python's, some at a time: as many objects as a file has rows would need much memory."""
    for start in range(0, table.num_rows, _TURN):
        some = table.slice(start, _TURN)
        columns: tuple[Iterable[Any], ...] = (
            some.column("offset").to_pylist(),
            some.column("timestamp").cast(pa.int64()).to_pylist(),
            some.column("timestampType").to_pylist(),
            some.column("key").to_pylist(),
            some.column("value").to_pylist(),
            map(_headers, some.column("headers").to_pylist()),
        )
        yield from map(Row, *columns)


def _headers(found: list[dict[str, Any]] | None) -> Headers | None:
    return None if found is None else [(each["key"], each["value"]) for each in found]
