"""Appending to streams, through conflicts, clocks that differ and connections that are lost on the way."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import psycopg

from penstock.errors import ConfigurationError, ConflictError, RepeatedCommandError, StoreError
from penstock.sourcing.append import Append, Context
from penstock.sourcing.batch import Batch
from penstock.sourcing.database import Connection, Database
from penstock.sourcing.inserting import insert
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.subject_keys import SubjectKeys

Clock = Callable[[], datetime]
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_TRIES = 3
_LAST = """
    SELECT version, at, coalesce(transaction > pg_current_xact_id_if_assigned(), false) FROM {schema}.events
    WHERE topic = %s AND stream = %s ORDER BY version DESC LIMIT 1"""
_HELD = "SELECT id::text FROM {schema}.events WHERE topic = %s AND stream = %s AND version = %s"


class Appender:
    """Appends to the streams of one store; no connection is held while something else is asked for."""

    def __init__(self, database: Database, keys: SubjectKeys, clock: Clock) -> None:
        self._database, self._keys, self._clock = database, keys, clock

    def append(
        self, appends: Sequence[Append], command: str | None, context: Context, own: Connection | None
    ) -> list[Recorded]:
        """Append all or nothing, on a connection of the caller's `own` or of the pool."""
        if len({(each.category, each.stream) for each in appends}) < len(appends):
            raise ConfigurationError("a stream is appended to twice at once", hint="join the events of both")
        at = self._clock()
        for _ in range(_TRIES):
            batch = Batch(appends, at, context, self._keys)
            later = self._tried(batch, command, own) if len(batch) else None
            if later is None:
                return batch.records
            at = max(at, later)
        raise StoreError(
            f"{appends[0].category} {appends[0].stream!r} took no event: another one was later each time",
            hint=f"if the database was restored from a dump: penstock store renumber {self._database.schema}",
        )

    def _tried(self, batch: Batch, command: str | None, own: Connection | None) -> datetime | None:
        """Insert and return None; or, where the event before is later than these, return its time."""
        if own is not None:
            batch.make()  # one that can't be made must not spoil the caller's transaction
            return self._inserted(own, batch, command)
        try:
            with self._database.connection() as lent:
                return self._inserted(lent, batch, command)
        except psycopg.OperationalError:
            pass  # whether it happened is not known
        with self._database.connection() as lent:
            return self._tried_again(lent, batch, command)

    def _tried_again(self, connection: Connection, batch: Batch, command: str | None) -> datetime | None:
        """Insert what may be there; the server may still be at it, and come to its end meanwhile."""
        first = batch.records[0]
        if self._holds(connection, first):
            return None
        try:
            return self._inserted(connection, batch, command)
        except (ConflictError, RepeatedCommandError):
            if self._holds(connection, first):
                return None
            raise

    def _holds(self, connection: Connection, record: Recorded) -> bool:
        place = [self._topic(record.category), record.stream, record.version]
        return connection.execute(self._database.sql(_HELD), place).fetchone() == (record.id,)

    def _inserted(self, connection: Connection, batch: Batch, command: str | None) -> datetime | None:
        try:
            fits = insert(self._database, connection, batch, command)
        except psycopg.errors.UniqueViolation as error:
            if error.diag.constraint_name == "events_command":
                raise RepeatedCommandError(str(command), ()) from None
            raise self._conflict(connection, batch.appends) from None
        return None if fits else self._newest(connection, batch.appends)

    def _newest(self, connection: Connection, appends: Sequence[Append]) -> datetime:
        """Return the time of the newest event that the appended ones follow, or say what does not fit."""
        newest = _EARLIEST
        for each in appends:
            place = [self._topic(each.category), each.stream]
            found = connection.execute(self._database.sql(_LAST), place).fetchone()
            version, at, is_after = found or (0, _EARLIEST, False)
            if version != each.expected or is_after:
                raise ConflictError(each.category, each.stream, each.expected, version)
            newest = max(newest, at)
        return newest

    def _conflict(self, connection: Connection, appends: Sequence[Append]) -> ConflictError:
        """Return which stream is not as expected; in a transaction that has failed, nobody can ask."""
        try:
            self._newest(connection, appends)
        except ConflictError as found:
            return found
        except psycopg.errors.InFailedSqlTransaction:
            pass
        first = appends[0]
        return ConflictError(first.category, first.stream, first.expected, None)

    def _topic(self, category: str) -> str:
        return f"{self._database.schema}.{category}"
