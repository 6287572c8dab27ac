"""The stream of a binary log, turned into records: which are due, and how far they bring the position."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.capture.mysql import events
from penstock.capture.mysql.events import Event, RowsOf
from penstock.capture.mysql.group import Group
from penstock.capture.mysql.packed import Unpack
from penstock.capture.mysql.place import RowPlace, offset, place
from penstock.capture.mysql.source import moved
from penstock.capture.mysql.source_block import BinlogOrigin
from penstock.capture.mysql.statements import Effect, effect
from penstock.capture.mysql.table_map import path_of
from penstock.capture.pgoutput import Change, Values
from penstock.capture.position import BinlogPlace, Position
from penstock.capture.stream import Batch, CapturedTable, Truncation
from penstock.capture.transactions import Transactions
from penstock.errors import CaptureError

_SAVEPOINT = re.compile(r"(SAVEPOINT|ROLLBACK TO)\s+(?:SAVEPOINT\s+)?`?((?:[^`]|``)+?)`?\s*", re.IGNORECASE)
_ENDS, _GONE = ("COMMIT", "XA COMMIT"), ("ROLLBACK", "XA ROLLBACK")
_XA = ("XA START", "XA BEGIN", "XA END")  # which say nothing of tables
_WRAP = 1 << 32
_FIRST = 4  # where the first event of a file is


@dataclass(frozen=True)
class MappedTable:
    """A captured table of one shape: how its rows are unpacked, and its records made."""

    table: CapturedTable
    unpack: tuple[Unpack, ...]
    hidden: frozenset[int] = frozenset()  # the places of columns that are the server's own


@dataclass(frozen=True)
class Answers:
    """What a stream asks of those who follow it."""

    describe: Callable[[bytes], MappedTable]
    emptied: Callable[[str], CapturedTable | None]
    other: Callable[[list[str]], None]
    born: Callable[[int], None]
    altered: Callable[[str], None]


class Stream:
    """Follows transactions: `feed` takes events, `changes` the transaction that has come whole."""

    def __init__(
        self,
        position: Position,
        paths: tuple[str, ...],
        answers: Answers,
        folder: Path,
        transactions: Transactions | None = None,
        lowers_names: bool = False,
    ) -> None:
        self.position, self.batch = position, Batch()
        self.in_transaction = False
        self._paths, self._answers, self._folder, self._transactions = paths, answers, folder, transactions
        self._lowers_names = lowers_names
        binlog = position.binlog or BinlogPlace("", 0)
        self._file, self._at = binlog.file, offset(position.lsn)
        self._gtids = dict(_by_domain(binlog.gtid))
        self._group: Group | None = None
        self._captured: dict[int, bool] = {}  # by the number that the log gives a table for a while
        self._mapped: dict[bytes, MappedTable] = {}
        self._known: dict[int, MappedTable] = {}
        self._origin = BinlogOrigin(0, None)
        self._commit = self._index = self._skip = 0

    def feed(self, event: Event) -> bool:
        """Take in an event; say whether a transaction has come whole."""
        kind = event.kind
        if kind == events.ROTATE:
            self._rotate(event)
            return False
        if kind == events.FORMAT:
            self._format(event)
        start = self._advance(event)
        if kind == events.GTID:
            self._begin(event, start)
        elif kind == events.INCIDENT:
            raise CaptureError(
                f"the server notes an incident at {self._file}:{start}: its log lacks changes",
                hint="see the server's log; `penstock capture run NAME --snapshot-again` writes all again",
            )
        elif self._group is not None:
            return self._feed_group(self._group, event, start)
        elif event.ends:
            self._move_on()
        return False

    def _advance(self, event: Event) -> int:
        """Go behind an event; return where it began. Places in the log wrap around in huge files."""
        start = self._at
        if event.ends and event.kind != events.HEARTBEAT:
            ends = start // _WRAP * _WRAP + event.ends
            self._at = ends + _WRAP if ends < start else ends
            start = self._at - event.size
        return place(self._file, start)

    def _rotate(self, event: Event) -> None:
        file, at = events.rotate(event)
        if (file, at) != (self._file, self._at) and place(file, at) > place(self._file, self._at):
            self._file, self._at = file, max(at, _FIRST)

    def _format(self, event: Event) -> None:
        """A file begins, or is begun anew by a server that was killed: what was open never ended."""
        if self._group is not None:
            self._group.close()
            self._group = None
        known = self.position.binlog or BinlogPlace("", 0)
        if known.file != self._file:
            self.position = moved(self.position, place(self._file, _FIRST), file=self._file, born=event.at)
            return
        self._answers.born(event.at)
        self.position = replace(self.position, binlog=replace(known, born=event.at))

    def _move_on(self) -> None:
        lsn = place(self._file, self._at)
        if lsn > self.position.lsn:
            self.position = moved(self.position, lsn)

    def _begin(self, event: Event, start: int) -> None:
        if self._group is not None:
            raise CaptureError(
                f"the transaction {self._group.gtid} has no end in the log", hint="report this, with the log"
            )
        self._group = Group(events.gtid(event), start, event.at, self._folder)

    def _feed_group(self, group: Group, event: Event, start: int) -> bool:
        kind = event.kind
        if kind == events.TABLE:
            is_wanted = path_of(event.body) in self._paths
            self._captured[events.table_id(event.body)] = is_wanted
            if is_wanted:
                group.add(start, kind, event.body)
        elif kind in events.ROWS:
            if self._captured.get(events.table_id(event.body)):
                group.add(start, kind, event.body)
        elif kind == events.XID:
            return True
        elif kind in (events.QUERY, events.QUERY_COMPRESSED):
            return self._query(group, event, start)
        elif kind == events.XA_PREPARE:
            self._prepared(group)
        elif kind in events.LOADS:
            group.add(start, kind, b"")
        return False

    def _query(self, group: Group, event: Event, start: int) -> bool:
        query = events.query(event)
        text = query.text.strip()
        upper = text.upper()
        if upper == "BEGIN" or upper.startswith(_XA):
            return False
        if upper.startswith(_ENDS):
            return True
        if (found := _SAVEPOINT.fullmatch(text)) is not None:
            self._savepoint(group, found[1].upper() == "SAVEPOINT", found[2].lower())
            return False
        if upper.startswith(_GONE):
            self._forget()
            return False
        group.add(start, events.QUERY, f"{query.database}\0{query.text}".encode())
        return bool(group.gtid.flags & events.STANDALONE)

    def _savepoint(self, group: Group, is_set: bool, name: str) -> None:
        if is_set:
            group.mark(name)
        elif not group.undo(name):
            raise CaptureError(f"the log goes back to savepoint {name!r}, which it does not have")

    def _forget(self) -> None:
        """A transaction that was undone counts as read."""
        if self._group is not None:
            self._pass(self._group)

    def _prepared(self, group: Group) -> None:
        if not group.is_empty:
            raise CaptureError(
                f"the transaction {group.gtid} is one of two phases (XA PREPARE): whether it counts, the log "
                "says only later, and that can't be captured yet",
                hint="let applications use plain transactions for captured tables",
            )
        self._pass(group)

    def _pass(self, group: Group) -> None:
        """Go behind a transaction."""
        self._gtids[group.gtid.domain] = str(group.gtid)
        group.close()
        self._group = None
        gtid = ",".join(self._gtids[each] for each in sorted(self._gtids))
        ended = replace(self.position, commit=0, index=0)
        self.position = moved(ended, place(self._file, self._at), gtid=gtid)

    def changes(self) -> Iterator[None]:
        """Make the records of the transaction that has come whole; pauses now and then."""
        group = self._group
        if group is None:
            return
        self._commit, self._index, self._skip = group.place, 0, self.position.written_of(group.place)
        wanted, committed = self._transactions, group.at * 1_000_000
        counted = None if wanted is None else wanted.begin(str(group.gtid), committed)
        self._origin = BinlogOrigin(
            committed,
            None,
            now=time.time_ns(),
            events=counted,
            gtid=str(group.gtid),
            server=group.gtid.server,
        )
        self.in_transaction = True
        for at, kind, body in group.read():
            yield from self._event(at, kind, body)
        if counted is not None:
            self.batch.messages += counted.closed()
        self.in_transaction = False
        self.batch.seen = committed if self._index else self.batch.seen
        self._pass(group)

    def _event(self, at: int, kind: int, body: bytes) -> Iterator[None]:
        if kind == events.TABLE:
            self._known[events.table_id(body)] = self._mapping(body)
        elif kind == events.QUERY:
            database, _, text = body.decode().partition("\0")
            done = effect(text, database)
            self._statement(done.lowered() if self._lowers_names else done, text, at)
            yield
        elif kind in events.LOADS:
            raise _unseen("LOAD DATA")
        else:
            found = events.rows(Event(kind, 0, 0, 0, 0, body))
            yield from self._rows(self._known[found.table], found, at)

    def _mapping(self, body: bytes) -> MappedTable:
        description = body[8:]
        if description not in self._mapped:
            self._mapped[description] = self._answers.describe(body)
        return self._mapped[description]

    def forget_shapes(self) -> None:
        """Have tables described again: their catalogue may have changed."""
        self._mapped.clear()

    def _rows(self, mapped: MappedTable, rows: RowsOf, at: int) -> Iterator[None]:
        _refuse_partial(mapped, rows)
        place, number, data = 0, 0, rows.data
        while place < len(data):
            before, place = _row(mapped, data, place)
            after: Values | None = before
            if rows.op == "u":
                after, place = _row(mapped, data, place)
            change = Change(
                rows.op, 0, None if rows.op == "c" else before, None if rows.op == "d" else after, False
            )
            if not self._is_in_snapshot(mapped.table):
                self._change(mapped.table, change, RowPlace.of(at, number))
            number += 1
            yield

    def _change(self, table: CapturedTable, change: Change, at: RowPlace) -> None:
        counted = self._origin.events
        if not self.is_due():
            if counted is not None:  # it was written, but it counts
                table.records.of(change, self._origin, at)
                counted.opened()
            return
        made, batch = table.records.of(change, self._origin, at), self.batch
        batch.messages += made
        if counted is not None:
            batch.messages += counted.opened()
        batch.changes += 1
        for each in made:
            batch.size += len(each[2] or b"")

    def _is_in_snapshot(self, table: CapturedTable) -> bool:
        """Whether a change is in what is still to be read: rows without a key can't be written twice."""
        if table.records.has_key:
            return False
        progress = self.position.tables.get(table.path)
        return progress is not None and not progress.done

    def is_due(self) -> bool:
        """Count a change; say whether it is still to be written."""
        self._index += 1
        return self._index > self._skip

    def checkpoint(self) -> Position:
        """Return the position with all that was made into records."""
        position = self.position
        if self.in_transaction and self._index > self._skip:
            position = replace(position, commit=self._commit, index=self._index)
        changes, seen = position.changes + self.batch.changes, self.batch.seen or position.seen
        return replace(position, changes=changes, seen=seen)

    def _statement(self, done: Effect, text: str, at: int) -> None:
        self.forget_shapes()
        if done.written or any(path in self._paths for path in done.restarted):
            raise _unseen(text)
        for path in self._paths:
            if path in done.altered:
                self._answers.altered(path)
        gone = [path for path in self._paths if path in done.emptied or path.startswith(f"{done.dropped}.")]
        other = [path for path in self._paths if path in done.other]
        if not gone and not other:
            return
        is_due = self.is_due()
        if other and is_due:
            self._answers.other(other)
        for path in gone:
            self._emptied(path, RowPlace.of(at, 0), is_due)

    def _emptied(self, path: str, at: RowPlace, is_due: bool) -> None:
        table, counted = self._answers.emptied(path), self._origin.events
        if table is None:
            return
        if is_due:
            self.batch.truncations.append(Truncation(table, self._origin, at))
            self.batch.changes += 1
        elif counted is not None:
            table.records.truncation(self._origin, at)
            counted.opened()


def _unseen(text: str) -> CaptureError:
    """Rows that were changed by a statement in the log are not in it, whatever table it names."""
    first = text.split(maxsplit=1)[0][:20].upper()  # the rest may hold what nobody else may read
    return CaptureError(
        f"a change ({first} …) is in the log as a statement, without its rows: somebody has set "
        "binlog_format for a session, and views, triggers and functions may change captured tables by it",
        hint="forbid that; `penstock capture run NAME --snapshot-again` writes all rows again",
    )


def _row(mapped: MappedTable, data: bytes, at: int) -> tuple[Values, int]:
    """Unpack a row: first a bit for each column that is null, then the others' values."""
    unpack = mapped.unpack
    nulls, at = data[at : at + (len(unpack) + 7) // 8], at + (len(unpack) + 7) // 8
    values: Values = []
    for number, each in enumerate(unpack):
        if nulls[number >> 3] >> (number & 7) & 1:
            values.append(None)
        else:
            value, at = each(data, at)
            values.append(value)
    if mapped.hidden:
        values = [value for number, value in enumerate(values) if number not in mapped.hidden]
    return values, at


def _refuse_partial(mapped: MappedTable, rows: RowsOf) -> None:
    whole = (1 << rows.columns) - 1
    if any(int.from_bytes(each, "little") & whole != whole for each in rows.present):
        raise CaptureError(
            f"a change of {mapped.table.path!r} lacks columns: a session has set binlog_row_image",
            hint="forbid that; `penstock capture run NAME --snapshot-again` writes all rows again",
        )


def _by_domain(gtid: str) -> Iterator[tuple[int, str]]:
    for each in gtid.split(","):
        if each.strip():
            yield int(each.partition("-")[0]), each.strip()
