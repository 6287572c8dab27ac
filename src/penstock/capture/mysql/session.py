"""One run of a capture of MariaDB: from its position on, until it is stopped or something fails."""

import shutil
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from penstock.capture.capture import Capture
from penstock.capture.lost import refuse_outbox
from penstock.capture.mysql.following import Beginning, Following
from penstock.capture.mysql.server import Server
from penstock.capture.mysql.snapshot import Snapshot
from penstock.capture.mysql.source import Source
from penstock.capture.mysql.source_block import MariaDbSource
from penstock.capture.output import Output, Report
from penstock.capture.position import BinlogPlace, Position, TableProgress, fresh
from penstock.capture.replication import System
from penstock.capture.wishes import Stopped, Wishes
from penstock.errors import ChangesLostError
from penstock.settings import Settings

_PATIENCE = 70.0  # seconds: until the server notices that a connection is lost


class MariaDbSession:
    """Runs a capture; `run` returns when it is stopped, and raises what may be tried again or not."""

    def __init__(
        self, settings: Settings, capture: Capture, wishes: Wishes, report: Report = lambda _: None
    ) -> None:
        self._settings, self._capture, self._wishes, self._report = settings, capture, wishes, report
        self._dsn = settings.dsn(capture.connection)
        self.has_begun = False  # whether its first position is written

    def run(self) -> None:
        """Write what is there and what comes, until stopped."""
        with ExitStack() as opened:
            try:
                self._run(opened)
            except Stopped:
                return

    def _run(self, opened: ExitStack) -> None:
        server = opened.enter_context(Server(self._dsn))
        source = Source(server, self._capture, self._settings.namespace)
        source.check()
        source.hold(_PATIENCE if self._wishes.goes_on else 0)
        log = next(iter(source.logs())).rpartition(".")[0]
        output = Output(self._settings, self._capture, MariaDbSource(log), self._report)
        opened.callback(output.close)
        for path in self._capture.tables:
            output.prepare(source.catalogue.shape(path))
        beginning = self._beginning(source, output)
        if beginning.snapshot is not None:
            opened.callback(beginning.snapshot.close)
        Following(source, output, beginning, self._wishes, self._dsn, self._folder()).run()

    def _folder(self) -> Path:
        """Where large transactions wait for their end."""
        label = self._capture.identity(self._settings.namespace).label.replace(":", "@")
        folder = self._settings.data / "captures" / label
        shutil.rmtree(folder, ignore_errors=True)  # what a killed one has left
        folder.mkdir(parents=True)
        return folder

    def _beginning(self, source: Source, output: Output) -> Beginning:
        stored = output.position()
        if stored is None or self._wishes.snapshot_again:
            return self._begin(source, output, stored)
        try:
            source.refuse_lost(stored)
        except ChangesLostError:
            if self._capture.snapshot != "when-needed":
                raise
            return self._begin(source, output, stored)
        output.refuse_other_topics(stored)
        self.has_begun = True
        return Beginning(self._with_requests(self._with_tables(stored, source, output)))

    def _begin(self, source: Source, output: Output, old: Position | None) -> Beginning:
        """Start from nothing, or again where changes were lost: all tables are to be read."""
        if old is None:
            output.refuse_records()
        else:
            refuse_outbox(self._capture, old)
        tables = {path: self._planned(path, source, output, old) for path in self._capture.paths}
        snapshot = Snapshot(self._dsn)
        position = Position(
            System(source.server.one("select @@global.server_id") or "", 0),
            snapshot.place,
            tables=tables,
            topics=output.topic_ids(),
            taken=len(self._capture.requests),
            binlog=BinlogPlace(snapshot.file, 0, source.gtid(snapshot.file, snapshot.at) or ""),
        )
        output.write([], position)
        self.has_begun = True
        return Beginning(position, snapshot, frozenset(position.pending))

    def _planned(self, path: str, source: Source, output: Output, old: Position | None) -> TableProgress:
        is_table = path in self._capture.tables
        done = self._capture.snapshot == "never" and old is None
        about = source.catalogue.facts(path).rows
        now = TableProgress(key=source.catalogue.shape(path).key_spelling, about=about)
        return replace(fresh(now, output.ends(path) if old is not None and is_table else {}), done=done)

    def _with_tables(self, position: Position, source: Source, output: Output) -> Position:
        """Forget tables that are captured no more, and read those that are new while the stream goes on."""
        tables = {
            path: position.tables.get(path) or self._planned(path, source, output, None)
            for path in self._capture.paths
        }
        return replace(position, tables=tables, topics=output.topic_ids())

    def _with_requests(self, position: Position) -> Position:
        """Take what was asked for since, once."""
        asked = self._capture.requests[position.taken :]
        return replace(position, requests=(*position.requests, *asked), taken=len(self._capture.requests))
