"""One run of a replica: from the positions in its database on, until it is stopped or something fails."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg

from penstock.capture import Store
from penstock.capture.replication import connect
from penstock.capture.requests import send
from penstock.capture.slot import Source
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.errors import ReplicaError, TryAgainError
from penstock.log import Broker
from penstock.log.message import Received
from penstock.points import reach
from penstock.replica.copy_tables import CopyTables
from penstock.replica.explained import explained
from penstock.replica.latest import Latest
from penstock.replica.ledger import Ledger, label
from penstock.replica.replica import Replica
from penstock.replica.source_tables import fingerprint, source_table
from penstock.replica.table_writer import TableWriter, UnknownColumnError
from penstock.replica.topic_reader import TopicReader, refuse_other
from penstock.settings import Settings

Log = Callable[[str], None]
_PIECE, _MOST = 5_000, 20_000  # records of one table, and of all, in a transaction
_PAUSE, _IDLE, _GLANCE = 0.02, 0.3, 3.0  # seconds
_MOST_TRIES = 20  # of a batch for which the copy's tables have to change


@dataclass(frozen=True)
class Applied:
    """What a session has written so far."""

    records: int
    seen: int  # when the last change was committed, in microseconds


class Session:
    """Applies records until `stopped` is set; raises what may be tried again or not."""

    def __init__(
        self,
        settings: Settings,
        replica: Replica,
        stopped: threading.Event,
        *,
        begin_anew: bool = False,
        log: Log = lambda _: None,
        report: Callable[[Applied], None] = lambda _: None,
    ) -> None:
        self._settings, self._replica, self._stopped = settings, replica, stopped
        self._begin_anew, self._log, self._report = begin_anew, log, report
        self._name = f"penstock replica {replica.name}"
        self._applied = Applied(0, 0)
        self._asked_for: set[str] = set()  # tables that are read again, because a record does not fit
        self._moved_at = 0.0
        self.has_begun = False

    def run(self) -> None:
        """Write what the log has and what comes, until stopped or until the capture is declared anew."""
        with ExitStack() as opened, explained():
            self._capture = Store(self._settings).get(self._replica.capture)
            self._replica.check(self._capture)
            self._broker = Broker(self._settings)
            connection = opened.enter_context(
                connect(self._settings.dsn(self._replica.connection), self._name)
            )
            self._ledger = Ledger(connection, label(self._settings.namespace, self._replica.name))
            self._refuse_tables()
            self._ledger.prepare()
            self._ledger.claim(self._replica)
            self._copies = CopyTables(self._ledger, self._replica, self._read_again, self._log)
            self._start(opened)
            self._follow()

    def _refuse_tables(self) -> None:
        with self._source() as source:
            for path in self._capture.tables:
                source_table(source, path).check()

    def _start(self, opened: ExitStack) -> None:
        if self._begin_anew:
            with self._ledger.writing():
                self._copies.empty()
                self._ledger.forget_places()
        self._refuse_long_absence()
        self.has_begun = True
        self._writers: dict[str, TableWriter] = {}
        self._follow_tables()
        self._readers: list[TopicReader] = []
        ids = self._topic_ids()
        for path in self._capture.tables:
            topic = self._capture.topic(path)
            reader = TopicReader(path, topic, ids[topic], self._settings, self._ledger)
            opened.callback(reader.close)
            self._readers.append(reader)

    def _refuse_long_absence(self) -> None:
        """A compacted topic forgets deletions after a while: who was away for longer would keep the rows."""
        topics = self._broker.topics(self._topic_ids())
        kept = min(int(each.config.get("delete.retention.ms", 2**40)) for each in topics.values())
        away = datetime.now(UTC) - self._ledger.fresh
        if away > timedelta(milliseconds=kept):
            raise ReplicaError(
                f"the replica was last up to date {away.days} days ago, and the topics keep deletions for "
                f"{timedelta(milliseconds=kept).days} days",
                hint=f"`penstock replica run {self._replica.name} --begin-anew` reads everything again",
            )

    def _topic_ids(self) -> dict[str, str]:
        topics = [self._capture.topic(path) for path in self._capture.tables]
        found = self._broker.topic_ids(topics)
        missing = next((each for each in topics if each not in found), None)
        if missing is not None:
            raise TryAgainError(
                f"topic {missing!r} does not exist yet",
                hint=f"`penstock capture run {self._capture.name}` makes it",
            )
        return found

    def _follow(self) -> None:
        looked_at = time.monotonic()
        while not self._stopped.is_set():
            batch = self._read()
            if batch:
                self._apply(batch)
            else:
                self._stopped.wait(_PAUSE)
                self._move_on()
            if time.monotonic() - looked_at > _GLANCE:
                if not self._is_as_declared():
                    return
                looked_at = time.monotonic()
        self._ledger.note("stopped")

    def _move_on(self) -> None:
        """Move past what holds no records, such as the marks of transactions: audits wait for it."""
        now = time.monotonic()
        if now - self._moved_at > _IDLE and any(each.has_moved for each in self._readers):
            self._write({})
            self._moved_at = now

    def _read(self) -> dict[str, list[Received]]:
        batch, room = {}, _MOST
        for reader in self._readers:
            if room > 0 and (found := reader.read(min(room, _PIECE))):
                batch[reader.path] = found
                room -= len(found)
        return batch

    def _apply(self, batch: dict[str, list[Received]]) -> None:
        """Write a batch; where it does not fit, the tables are looked at, and it is tried again."""
        latest = {path: Latest.of(messages) for path, messages in batch.items()}
        for _ in range(_MOST_TRIES):
            try:
                self._write(latest)
                break
            except UnknownColumnError:
                self._follow_tables(latest)
            except psycopg.errors.NotNullViolation as error:
                self._allow_null(error)
            except psycopg.DataError as error:
                if self._has_changed():
                    self._follow_tables(latest)
                elif not self._replace_unfit(latest):
                    raise error
        else:
            raise ReplicaError(f"a batch could not be written in {_MOST_TRIES} tries", hint="see the log")
        records = sum(len(each) for each in batch.values())
        seen = max((each.seen for each in latest.values()), default=0) or self._applied.seen
        self._applied = Applied(self._applied.records + records, seen)
        self._report(self._applied)

    def _write(self, latest: dict[str, Latest]) -> None:
        moved = []
        for path in latest:
            self._writers[path].prepare()
        with self._ledger.writing():
            for reader in self._readers:
                found = latest.get(reader.path)
                if found is not None:
                    self._writers[reader.path].write(found)
                if found is not None or reader.has_moved:
                    moved.append((reader, reader.move(found.seen if found else 0)))
            reach("replica.before-commit", self._replica.name)
        reach("replica.after-commit", self._replica.name)
        for reader, place in moved:
            reader.place = place

    def _allow_null(self, error: psycopg.errors.NotNullViolation) -> None:
        name, column = error.diag.table_name, error.diag.column_name
        for each in self._writers.values():
            if each.table.name == name and each.table.schema == error.diag.schema_name and column:
                self._copies.allow_null(each.table, column)
                return
        raise error

    def _replace_unfit(self, latest: dict[str, Latest]) -> bool:
        """Make null what is from before its column got the type that it has, and read its table again."""
        found = {path: self._writers[path].replace_unfit(each) for path, each in latest.items()}
        for path, unfit in found.items():
            if unfit and path not in self._asked_for:
                self._log(f"{path}: {unfit} does not fit its column: a record from before it was changed")
                self._read_again(path)
                self._asked_for.add(path)
        return any(found.values())

    def _follow_tables(self, latest: dict[str, Latest] | None = None) -> None:
        """Bring the copy's tables into the shape that the source's have now."""
        for each in self._writers.values():
            each.forget_stage()
        with self._source() as source:
            self._fingerprint = fingerprint(source, self._capture.tables)
            tables = [source_table(source, path) for path in self._capture.tables]
        for number, table in enumerate(tables):
            copy = self._copies.follow(table)
            known = self._writers.get(table.path)
            ignored = set(known.ignored if known else ())
            if latest is not None and table.path in latest:
                ignored |= {name for row, _ in latest[table.path].rows.values() for name in row}
            ignored -= {column.name for column in table.columns}
            self._writers[table.path] = TableWriter(self._ledger.connection, copy, number, ignored)

    @contextmanager
    def _source(self) -> Iterator[Source]:
        with connect(self._settings.dsn(self._capture.connection), self._name) as connection:
            connection.execute("SET search_path TO pg_catalog")  # so that types are spelled with their schema
            yield Source(connection, self._capture, self._settings.namespace)

    def _has_changed(self) -> bool:
        with self._source() as source:
            return fingerprint(source, self._capture.tables) != self._fingerprint

    def _read_again(self, path: str) -> None:
        """Have the capture write a table's rows in their new shape: PostgreSQL logs no change for them."""
        self._log(f"{path} has another shape: the capture is asked to read it again")
        with self._source() as source:
            send(SnapshotRequest(path), source)

    def _is_as_declared(self) -> bool:
        """Look at the capture, its topics and its tables; note how far the copy is."""
        asked = datetime.now(UTC)
        try:
            if Store(self._settings).get(self._replica.capture) != self._capture:
                return self._capture_is_same()
            ids = self._topic_ids()
            for each in self._readers:
                refuse_other(each.place, ids[each.place.topic])
            behind = self._behind()
            if self._has_changed():
                self._follow_tables()
        except TryAgainError as error:
            self._ledger.note("running", str(error))
            return True
        self._ledger.note("running", fresh=asked if behind == 0 else None)
        return True

    def _capture_is_same(self) -> bool:
        """Whether the capture has changed only in what is nothing to a replica."""
        now = Store(self._settings).get(self._replica.capture)
        is_same = (now.tables, now.prefix, now.connection) == (
            self._capture.tables,
            self._capture.prefix,
            self._capture.connection,
        )
        self._capture = now
        return is_same

    def _behind(self) -> int:
        return lag(self._broker, {each.place.topic: each.place.offsets for each in self._readers})


def lag(broker: Broker, places: Mapping[str, Mapping[int, int]]) -> int:
    """Return how many records are still to be applied, at most."""
    behind = 0
    for topic, offsets in places.items():
        ends = broker.committed_end(topic)
        behind += sum(max(0, end - offsets.get(partition, 0)) for partition, end in ends.items())
    return behind
