"""The stream of a slot, turned into records: which are due, and how far they bring the position."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from penstock.capture import pgoutput
from penstock.capture.pgoutput import UNCHANGED, Change, Relation, Values
from penstock.capture.position import Position
from penstock.capture.records import Origin, Records, completed
from penstock.capture.spool import Spool
from penstock.capture.transactions import Transactions
from penstock.capture.windows import CommittedTransactions, Windows
from penstock.log.transactional_writer import Message

OWN = "penstock"  # the prefix of our own messages in the database's log


@dataclass(frozen=True)
class CapturedTable:
    """A table of the capture: how its records are made."""

    path: str
    records: Records
    complete: Callable[[Values, int], Values]  # finds large values that an update of a transaction left out


@dataclass(frozen=True)
class Truncation:
    """A table that was emptied; its rows have to be deleted one by one, which only the log knows."""

    table: CapturedTable
    origin: Origin
    lsn: int


@dataclass
class Batch:
    """Records that are due, and the position once they are written."""

    messages: list[Message] = field(default_factory=list)
    size: int = 0
    changes: int = 0
    seen: int = 0
    truncations: list[Truncation] = field(default_factory=list)


class Stream:
    """Follows transactions: `feed` takes the slot's messages, and `batch` collects what is to be written."""

    def __init__(
        self,
        position: Position,
        describe: Callable[[Relation], CapturedTable | None],
        on_message: Callable[[pgoutput.Message], list[Message]],
        on_own: Callable[[str, bool], None],
        spool: Spool,
        transactions: Transactions | None = None,
    ) -> None:
        self.position, self.batch = position, Batch()
        self.windows, self.committed = Windows(), CommittedTransactions()
        self.unseen = CommittedTransactions()  # which others may not see yet
        self.in_transaction = False
        self._describe, self._on_message, self._on_own, self._spool = describe, on_message, on_own, spool
        self._transactions = transactions
        self._tables: dict[int, CapturedTable | None] = {}
        self._shapes: dict[int, Relation] = {}
        self._origin = Origin(0, None)
        self._commit = self._index = self._skip = 0
        self._last_commit: int | None = None
        self._block: int | None = None  # the transaction that is being streamed

    def feed(self, lsn: int, data: bytes) -> None:
        """Take in a message of the slot; an empty one says how far the log was read."""
        if not data:
            self._move_on(lsn)
        elif self._block is not None:
            self._feed_block(lsn, data)
        elif data[0] in b"IUD":
            self._change(lsn, pgoutput.change(data))
        else:
            self._feed_other(lsn, data)

    def _feed_other(self, lsn: int, data: bytes) -> None:
        kind = chr(data[0])
        if kind == "B":
            self._begin(*pgoutput.begin(data))
        elif kind == "C":
            self._end(*pgoutput.commit(data))
        elif kind == "R":
            self._relation(pgoutput.relation(data))
        elif kind == "T":
            self._truncate(lsn, pgoutput.truncate(data))
        elif kind == "M":
            self._message(pgoutput.message(data))
        elif kind == "S":
            self._block = pgoutput.number(data, 1)
        elif kind == "A":
            self._spool.undo(*pgoutput.streamed_abort(data))

    def committed_block(self, data: bytes) -> Iterator[None]:
        """Feed a transaction that was streamed and is committed now; pauses after each of its changes."""
        xid, commit_lsn, end_lsn, committed = pgoutput.streamed_commit(data)
        self._begin(commit_lsn, committed, xid)
        for lsn, each in self._spool.read(xid):
            self.feed(lsn, each)
            yield
        self._end(commit_lsn, end_lsn)
        self._spool.forget(xid)

    def _feed_block(self, lsn: int, data: bytes) -> None:
        """Within a block, each message has the number of its part; all wait for the commit."""
        if data[0] == ord("E"):
            self._block = None
            return
        part, plain = pgoutput.number(data, 1), data[:1] + data[5:]
        self._spool.add(self._block or 0, part, lsn, plain)

    def _begin(self, commit_lsn: int, committed: int, xid: int) -> None:
        self.in_transaction = True
        self.unseen.add(xid)
        wanted = self._transactions
        events = None if wanted is None else wanted.begin(f"{xid}:{commit_lsn}", committed)
        self._origin = Origin(committed, xid, self._last_commit, now=time.time_ns(), events=events)
        self._commit, self._index = commit_lsn, 0
        done = self.position.is_written(commit_lsn)
        self._skip = 2**62 if done else self.position.written_of(commit_lsn)

    def _end(self, commit_lsn: int, end_lsn: int) -> None:
        self.in_transaction, self._last_commit = False, commit_lsn
        if self._origin.xid is not None:
            self.committed.add(self._origin.xid)
        if end_lsn > self.position.lsn:
            if self._origin.events is not None:
                self.batch.messages += self._origin.events.closed()
            self.position = replace(self.position, lsn=end_lsn, commit=0, index=0)
            self.batch.seen = self._origin.committed

    def _move_on(self, lsn: int) -> None:
        if not self.in_transaction and lsn > self.position.lsn:
            self.position = replace(self.position, lsn=lsn, commit=0, index=0)

    def checkpoint(self) -> Position:
        """Return the position with all that was fed."""
        position = self.position
        if self.in_transaction and self._index > self._skip:
            position = replace(position, commit=self._commit, index=self._index)
        changes, seen = position.changes + self.batch.changes, self.batch.seen or position.seen
        return replace(position, changes=changes, seen=seen)

    def is_due(self) -> bool:
        """Count a change; say whether it is still to be written."""
        self._index += 1
        return self._index > self._skip

    def _change(self, lsn: int, change: Change) -> None:
        self._index += 1
        is_due, events = self._index > self._skip, self._origin.events
        if not is_due and events is None:
            return
        table = self._tables.get(change.relation)
        if table is None or self._is_in_snapshot(table):
            return
        if events is not None and not is_due:  # it was written, but it counts
            table.records.of(change, self._origin, lsn)
            events.opened()
            return
        if self.windows:
            self._note(table, change)
        if change.after is not None and UNCHANGED in change.after:
            change = completed(change)
            change = change._replace(after=table.complete(change.after or [], self._origin.xid or 0))
        made, batch = table.records.of(change, self._origin, lsn), self.batch
        batch.messages += made
        if events is not None:
            batch.messages += events.opened()
        batch.changes += 1
        for each in made:
            batch.size += len(each[2] or b"")

    def _is_in_snapshot(self, table: CapturedTable) -> bool:
        progress = self.position.tables.get(table.path)
        return progress is not None and self._commit < progress.begins

    def _note(self, table: CapturedTable, change: Change) -> None:
        for row in (change.before, change.after):
            if row is not None:
                self.windows.changed(table.path, table.records.key_of(row))

    def _relation(self, relation: Relation) -> None:
        if self._shapes.get(relation.id) == relation:
            return
        self._shapes[relation.id] = relation
        table = self._tables[relation.id] = self._describe(relation)
        if table is not None:
            self.windows.voided(table.path)

    def _truncate(self, lsn: int, truncated: pgoutput.Truncate) -> None:
        is_due, events = self.is_due(), self._origin.events
        for id in truncated.relations:
            table = self._tables.get(id)
            if table is None or self._is_in_snapshot(table):
                continue
            if is_due:
                self.windows.voided(table.path)
                self.batch.truncations.append(Truncation(table, self._origin, lsn))
                self.batch.changes += 1
            elif events is not None:
                table.records.truncation(self._origin, lsn)
                events.opened()

    def _message(self, message: pgoutput.Message) -> None:
        due = self.is_due() if message.transactional else message.lsn >= self.position.lsn
        if message.prefix == OWN:
            self._on_own(message.content.decode(errors="replace"), due)
        elif due:
            made = self._on_message(message)
            self.batch.messages += made
            self.batch.changes += bool(made)
        if not message.transactional:  # all that was committed before it has been sent
            self._move_on(message.lsn + 1)
