"""One run of a capture: from the position in its ledger on, until it is stopped or something fails."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import psycopg

from penstock.capture.capture import Capture
from penstock.capture.debezium_records import PostgresSource
from penstock.capture.following import Following
from penstock.capture.incremental import IncrementalReader
from penstock.capture.initial import Beginning
from penstock.capture.lost import again, refuse_lost
from penstock.capture.output import Output, Report
from penstock.capture.position import OPEN, Position, TableProgress, fresh
from penstock.capture.replication import Replication, connect
from penstock.capture.slot import Source
from penstock.capture.spool import Spool
from penstock.capture.stream import Stream
from penstock.capture.tables import Connection, TableShape
from penstock.capture.wishes import Stopped, Wishes
from penstock.errors import CaptureError, ChangesLostError, SourceError
from penstock.settings import Settings

_PATIENCE = 70.0  # seconds: PostgreSQL lets a slot of a lost connection go after a minute


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
                with explained():
                    self._run(opened)
            except Stopped:
                return

    def _run(self, opened: ExitStack) -> None:
        source = self._source_on(opened.enter_context(connect(self._dsn, self._name)))
        self._prepare(source)
        replication = opened.enter_context(Replication(self._dsn, self._name))
        output = Output(self._settings, self._capture, PostgresSource(source.database), self._report)
        opened.callback(output.close)
        for path in self._capture.tables:
            output.prepare(source.catalogue.shape(path))
        position = self._position(source, output, replication)
        folder = self._capture.identity(self._settings.namespace).label.replace(":", "@")
        spool = Spool(self._settings.data / "captures" / folder)
        opened.callback(spool.close)
        Following(source, output, replication, position, spool, self._make_reader).run(self._wishes)

    def _prepare(self, source: Source) -> None:
        source.check()
        slot = source.slot()
        if slot is not None and slot.holder and self._wishes.goes_on:  # it may be what we held before
            source.await_free(_PATIENCE)
            slot = source.slot()
        if slot is not None:
            source.refuse_held(slot)

    def _position(self, source: Source, output: Output, replication: Replication) -> Position:
        stored = output.position()
        beginning = Beginning(source, output, self._dsn, self._name, self._wishes, self._begun)
        anew = self._wishes.snapshot_again
        if stored is None or (anew and not self._has_outbox(stored)):
            source.publish()
            return beginning.begin(replication, stored)
        try:
            position = self._checked(stored, source, output, replication, anew=anew)
        except ChangesLostError:
            if self._capture.snapshot != "when-needed":
                raise
            source.publish()
            return beginning.begin(replication, stored)
        position = self._published(position, source, output, anew=anew)
        self._begun()
        return beginning.keyless(position)

    def _has_outbox(self, position: Position) -> bool:
        """Whether events of an outbox may have been sent: they come from the slot that is there, or never."""
        return self._capture.outbox is not None and self._capture.outbox.table in position.tables

    def _published(self, position: Position, source: Source, output: Output, *, anew: bool) -> Position:
        """Publish what is captured; that it has to be read is in the ledger before, whoever is killed."""
        position = self._with_tables(position, source, output, anew=anew)
        if anew or source.unpublished():
            output.write([], position)
            source.publish()
        behind = source.newest_transaction()
        return replace(
            position,
            tables={
                path: replace(each, behind=behind) if each.behind == OPEN else each
                for path, each in position.tables.items()
            },
        )

    def _begun(self) -> None:
        self.has_begun = True

    def _checked(
        self, stored: Position, source: Source, output: Output, replication: Replication, *, anew: bool
    ) -> Position:
        """Return the position, if nothing is lost between it and the slot; `anew`, topics may be others."""
        system = replication.system
        if self._wishes.accept_timeline and system.id == stored.system.id:
            stored = replace(stored, system=system)
        refuse_lost(self._capture, source.slot(), stored, system, replication.end)
        output.refuse_other_topics(replace(stored, topics={}) if anew else stored)
        return replace(stored, topics=output.topic_ids())

    def _with_tables(self, position: Position, source: Source, output: Output, *, anew: bool) -> Position:
        """Forget tables that are captured no more, and read those that are new while the stream goes on.

        One that was not published for a while, or was made again, has lost changes: it is read again. So are
        all tables if that is wanted (`anew`).
        """
        unpublished, tables = source.unpublished(), {}
        for path in self._capture.paths:
            shape, known = source.catalogue.shape(path), position.tables.get(path)
            is_known = known is not None and path not in unpublished and known.oid in (0, shape.oid)
            if known is not None and is_known and not (anew and path in self._capture.tables):
                tables[path] = replace(known, oid=shape.oid, key=known.key or shape.key_spelling)
                continue
            if known is not None and not is_known:
                self._refuse_away(path, shape, known, anew=anew)
            now = TableProgress(oid=shape.oid, key=shape.key_spelling)
            planned = fresh(now, output.ends(path) if path in self._capture.tables else {})
            left_out = known is None or (known.done and known.behind == OPEN)
            skipped = self._capture.snapshot == "never" and left_out
            tables[path] = replace(planned, behind=OPEN, done=skipped)
        return replace(position, tables=tables)

    def _refuse_away(self, path: str, shape: TableShape, known: TableProgress, *, anew: bool) -> None:
        """Refuse to read again what can't be compared with what was written."""
        said = f"table {path!r} was not published for a while, or was made again"
        if path not in self._capture.tables:
            if known.behind != OPEN:  # otherwise it has not been published yet
                raise ChangesLostError(f"{said}: events of it may be lost", hint=again(self._capture))
        elif not shape.key and not anew:
            raise ChangesLostError(
                f"{said}, and has no key",
                hint=f"`penstock capture run {self._capture.name} --snapshot-again` writes all rows again",
            )

    def _source_on(self, connection: Connection) -> Source:
        return Source(connection, self._capture, self._settings.namespace)

    def _make_reader(self, stream: Stream) -> IncrementalReader:
        return IncrementalReader(self._dsn, self._name, self._source_on, stream.committed, self._wishes.chunk)


@contextmanager
def explained() -> Iterator[None]:
    """Say what an error of PostgreSQL's means: whether it passes, or somebody has to do something."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise SourceError(f"PostgreSQL: {str(error).strip()}", hint="it is tried again") from error
    except psycopg.Error as error:
        raise CaptureError(
            f"PostgreSQL refuses: {str(error).strip()}", hint="see the server's log"
        ) from error
