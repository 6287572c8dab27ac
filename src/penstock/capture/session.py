"""One run of a capture: from the position in its ledger on, until it is stopped or something fails."""

from contextlib import ExitStack
from dataclasses import replace

import psycopg

from penstock.capture.capture import Capture
from penstock.capture.following import Following
from penstock.capture.incremental import IncrementalReader
from penstock.capture.initial import Beginning
from penstock.capture.output import Output, Report
from penstock.capture.position import Position, TableProgress
from penstock.capture.replication import Replication, connect
from penstock.capture.slot import Source, refuse_lost
from penstock.capture.spool import Spool
from penstock.capture.stream import Stream
from penstock.capture.tables import Connection
from penstock.capture.wishes import Stopped, Wishes
from penstock.errors import CaptureError, PenstockError, SourceError
from penstock.settings import Settings


class Session:
    """Runs a capture; `run` returns when it is stopped, and raises what may be tried again or not."""

    def __init__(
        self, settings: Settings, capture: Capture, wishes: Wishes, report: Report = lambda _: None
    ) -> None:
        self._settings, self._capture, self._wishes, self._report = settings, capture, wishes, report
        self._dsn = settings.dsn(capture.connection)
        self._name = f"penstock capture {capture.name}"
        self.has_begun = False  # whether it has made its slot

    def run(self) -> None:
        """Write what is there and what comes, until stopped."""
        with ExitStack() as opened:
            try:
                self._run(opened)
            except Stopped:
                return
            except psycopg.Error as error:
                raise _explained(error) from error

    def _run(self, opened: ExitStack) -> None:
        source = self._source_on(opened.enter_context(connect(self._dsn, self._name)))
        self._prepare(source)
        replication = opened.enter_context(Replication(self._dsn, self._name))
        output = Output(self._settings, self._capture, source.database, self._report)
        opened.callback(output.close)
        for path in self._capture.tables:
            output.prepare(source.catalogue.shape(path))
        position = self._position(source, output, replication)
        self.has_begun = True
        spool = Spool(self._settings.data / "captures" / source.slot_name)
        opened.callback(spool.close)
        Following(source, output, replication, position, spool, self._make_reader).run(self._wishes)

    def _prepare(self, source: Source) -> None:
        source.check()
        slot = source.slot()
        if slot is not None:
            source.refuse_held(slot)
        source.publish()

    def _position(self, source: Source, output: Output, replication: Replication) -> Position:
        stored = output.position()
        beginning = Beginning(source, output, self._dsn, self._name, self._wishes)
        if stored is None or self._wishes.snapshot_again:
            return beginning.begin(replication, stored)
        try:
            position = self._checked(stored, source, output, replication)
        except CaptureError:
            if self._capture.snapshot != "when-needed":
                raise
            return beginning.begin(replication, stored)
        return beginning.keyless(self._with_tables(position))

    def _checked(
        self, stored: Position, source: Source, output: Output, replication: Replication
    ) -> Position:
        """Return the position, if nothing is lost between it and the slot."""
        system = replication.system
        if self._wishes.accept_timeline and system.id == stored.system.id:
            stored = replace(stored, system=system)
        refuse_lost(self._capture.name, source.slot(), stored, system)
        output.refuse_other_topics(stored)
        return replace(stored, topics=output.topic_ids())

    def _with_tables(self, position: Position) -> Position:
        """Tables that were added since are read while the stream goes on; others are forgotten."""
        fresh = TableProgress(done=self._capture.snapshot == "never")
        return replace(
            position, tables={path: position.tables.get(path, fresh) for path in self._capture.paths}
        )

    def _source_on(self, connection: Connection) -> Source:
        return Source(connection, self._capture, self._settings.namespace)

    def _make_reader(self, stream: Stream) -> IncrementalReader:
        return IncrementalReader(self._dsn, self._name, self._source_on, stream.committed, self._wishes.chunk)


def _explained(error: psycopg.Error) -> PenstockError:
    said = str(error).strip()
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return SourceError(f"PostgreSQL: {said}", hint="it is tried again")
    return CaptureError(f"PostgreSQL refuses: {said}", hint="see the server's log")
