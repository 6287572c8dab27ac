"""One run of a capture of MongoDB: from its position on, until it is stopped or something fails."""

from contextlib import ExitStack
from dataclasses import replace

from penstock.capture.capture import Capture
from penstock.capture.mongodb.client import Client, explained
from penstock.capture.mongodb.document_records import NoTables
from penstock.capture.mongodb.following import Following, planned
from penstock.capture.mongodb.source import Source
from penstock.capture.output import Output, Report
from penstock.capture.position import Position, TableProgress
from penstock.capture.replication import System
from penstock.capture.tables import TableShape
from penstock.capture.wishes import Stopped, Wishes
from penstock.errors import ChangesLostError
from penstock.settings import Settings


class MongoDbSession:
    """Runs a capture; `run` returns when it is stopped, and raises what may be tried again or not."""

    def __init__(
        self, settings: Settings, capture: Capture, wishes: Wishes, report: Report = lambda _: None
    ) -> None:
        self._settings, self._capture, self._wishes, self._report = settings, capture, wishes, report
        self.has_begun = False  # whether its first position is written

    def run(self) -> None:
        """Write what is there and what comes, until stopped."""
        with ExitStack() as opened:
            try:
                self._run(opened)
            except Stopped:
                return

    def _run(self, opened: ExitStack) -> None:
        dsn = self._settings.dsn(self._capture.connection)
        client = opened.enter_context(Client(dsn, self._capture.name))
        source = Source(client, self._capture)
        source.check()
        # Opening it shuts out another process of the same capture: MongoDB has no lock for that.
        output = Output(self._settings, self._capture, NoTables(), self._report)
        opened.callback(output.close)
        for path in self._capture.tables:
            output.prepare(TableShape(*_split(path), (), ("_id",)))
        try:
            self._follow(source, output, again=self._wishes.snapshot_again)
        except ChangesLostError:
            if self._capture.snapshot != "when-needed":
                raise
            self._follow(source, output, again=True)

    def _follow(self, source: Source, output: Output, *, again: bool) -> None:
        stored = output.position()
        if stored is None or again:
            position = self._begin(source, output, stored)
            Following(source, output, position, self._wishes, frozenset(position.pending)).run()
            return
        source.refuse_other(stored)
        output.refuse_other_topics(stored)
        self.has_begun = True
        position = self._with_requests(self._with_collections(stored, source, output))
        Following(source, output, position, self._wishes, frozenset()).run()

    def _begin(self, source: Source, output: Output, old: Position | None) -> Position:
        """Start from nothing, or again where changes were lost: all collections are to be read.

        The streams begin at a time before the first document is read.
        """
        if old is None:
            output.refuse_records()
        streams = {path: source.beginning(path) for path in self._capture.tables}
        position = Position(
            System(source.client.replica_set, 0),
            max(place.time for place in streams.values()),
            tables={path: self._planned(path, source, output, old) for path in self._capture.tables},
            topics=output.topic_ids(),
            taken=len(self._capture.requests),
            streams=streams,
        )
        output.write([], position)
        self.has_begun = True
        return position

    def _planned(self, path: str, source: Source, output: Output, old: Position | None) -> TableProgress:
        with explained():
            about = source.client.collection(path).estimated_document_count()
        done = self._capture.snapshot == "never" and old is None
        return planned(done, about, output.ends(path) if old is not None else {})

    def _with_collections(self, position: Position, source: Source, output: Output) -> Position:
        """Forget collections that are captured no more, and read those that are new."""
        new = [path for path in self._capture.tables if path not in position.streams]
        streams = {**position.streams, **{path: source.beginning(path) for path in new}}
        tables = {**position.tables, **{path: self._planned(path, source, output, None) for path in new}}
        wanted = self._capture.tables
        return replace(
            position,
            streams={path: streams[path] for path in wanted},
            tables={path: tables[path] for path in wanted},
            topics=output.topic_ids(),
        )

    def _with_requests(self, position: Position) -> Position:
        """Take what was asked for since, once."""
        asked = self._capture.requests[position.taken :]
        return replace(position, requests=(*position.requests, *asked), taken=len(self._capture.requests))


def _split(path: str) -> tuple[str, str]:
    database, _, name = path.partition(".")
    return database, name
