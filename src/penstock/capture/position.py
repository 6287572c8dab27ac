"""How far a capture has come: what its ledger says, in the same transactions as the changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import msgspec

from penstock.capture.replication import System
from penstock.capture.snapshot_request import SnapshotRequest

OPEN = 2**62


@dataclass(frozen=True)
class BinlogPlace:
    """What a place in a binary log is besides its number: whose it is, and what was committed before it.

    The file's birth distinguishes it from others of its name: another server's, or those before a reset.
    """

    file: str
    born: int  # seconds since 1970
    gtid: str = ""  # the last id of each domain, as the server spells them


@dataclass(frozen=True)
class StreamPlace:
    """How far a change stream of MongoDB was read: to its token, or to the time it begins behind."""

    time: int  # of the last change, or of the beginning: seconds since 1970 << 32 | a number in the second
    token: str = ""  # as extended JSON


@dataclass(frozen=True)
class TableProgress:
    """How much of a table's snapshot is written: all rows up to the key `after`.

    Changes that were committed before `begins` are in the snapshot already. Where the topic had rows before,
    `sweep` has its offsets at the start: keys with nothing behind them are gone from the table.
    """

    done: bool = False
    read: bool = False  # all rows are written, and what is gone is still to be swept
    after: tuple[str, ...] | None = None
    last: tuple[str, ...] | None = None  # where it ends, if only a part is wanted
    absent: tuple[tuple[str, ...], ...] = ()  # keys to delete with the next chunk, if the table has none
    oid: int = 0  # of the table: one that was made again has another
    key: tuple[str, ...] = ()  # its columns and their types, as records have them
    behind: int = 0  # a snapshot has to see all transactions before this one; OPEN if it is not known yet
    rows: int = 0
    about: int = 0
    begins: int = 0
    sweep: Mapping[int, int] = field(default_factory=dict)
    emptied: Mapping[int, int] = field(default_factory=dict)  # offsets before which no row is left

    def with_chunk(self, after: tuple[str, ...] | None, rows: int, *, final: bool) -> "TableProgress":
        """Return the progress when a chunk is written, the last of its table or not."""
        done = final and not self.sweep
        rows += self.rows
        return replace(self, after=after or self.after, rows=rows, read=final, done=done, absent=())


def fresh(known: TableProgress, sweep: Mapping[int, int]) -> TableProgress:
    """Return the progress of a table that is to be read again."""
    offsets = sweep if any(sweep.values()) else {}
    return TableProgress(
        oid=known.oid, key=known.key, about=known.about, sweep=offsets, emptied=known.emptied
    )


@dataclass(frozen=True)
class EventTopic:
    """A topic that events of applications were written to, as it was then."""

    id: str
    partitions: int


@dataclass(frozen=True)
class Position:
    """What is written: all transactions that were committed before `lsn`, and of that at `commit` some.

    `changes` counts what was written in all, `seen` is when the last change was committed.
    """

    system: System
    lsn: int
    commit: int = 0
    index: int = 0
    tables: Mapping[str, TableProgress] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)  # their ids: one made again has another
    events: Mapping[str, EventTopic] = field(default_factory=dict)  # by topic
    requests: tuple[SnapshotRequest, ...] = ()  # that wait for their turn
    taken: int = 0  # how many of the declaration's requests were taken
    binlog: BinlogPlace | None = None  # of MySQL and MariaDB: `lsn` is a place in their log
    streams: Mapping[str, StreamPlace] = field(default_factory=dict)  # of MongoDB, by collection
    written: float = 0.0  # of MongoDB: when, in seconds since 1970; who is alive writes now and then
    changes: int = 0
    seen: int = 0

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        return msgspec.json.decode(text, type=cls)

    @property
    def pending(self) -> list[str]:
        """The tables whose snapshot is not complete."""
        return [path for path, each in self.tables.items() if not each.done]

    def with_table(self, path: str, progress: TableProgress) -> "Position":
        return replace(self, tables={**self.tables, path: progress})

    def is_written(self, commit_lsn: int) -> bool:
        """Whether all of a transaction is written."""
        return commit_lsn < self.lsn

    def written_of(self, commit_lsn: int) -> int:
        """How many changes of a transaction are written."""
        return self.index if commit_lsn == self.commit else 0
