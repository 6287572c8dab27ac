"""The tables of an event store in PostgreSQL, and connections to them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from penstock.errors import ConfigurationError, StoreError
from penstock.settings import Secret

Connection = psycopg.Connection[TupleRow]
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('penstock.sourcing', 0))"
# `record` is what the topic carries, as it was written; the other columns find it. A transaction's number and
# the sequence within it are the store's order (see docs/decisions/019-event-store.md).
_TABLES = """
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.origin (id uuid NOT NULL, layout integer NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.events (
    topic text NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    id uuid NOT NULL,
    type text NOT NULL,
    at timestamptz NOT NULL,
    record json NOT NULL,
    command text,
    ordinal integer NOT NULL,
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    sequence bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (topic, stream, version)
);
CREATE UNIQUE INDEX IF NOT EXISTS events_order ON {schema}.events (transaction, sequence);
CREATE UNIQUE INDEX IF NOT EXISTS events_command ON {schema}.events (command, ordinal)
    WHERE command IS NOT NULL;
CREATE TABLE IF NOT EXISTS {schema}.snapshots (
    topic text NOT NULL,
    stream text NOT NULL,
    version bigint NOT NULL,
    tag text NOT NULL,
    state json NOT NULL,
    at timestamptz NOT NULL,
    taken timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, stream, tag)
);
CREATE TABLE IF NOT EXISTS {schema}.positions (
    reader text PRIMARY KEY,
    origin uuid NOT NULL,
    transaction xid8 NOT NULL,
    sequence bigint NOT NULL,
    event uuid NOT NULL
);
CREATE OR REPLACE FUNCTION {schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are facts: % of a stored event is refused', lower(TG_OP)
        USING HINT = 'append an event that corrects it';
END $$;
CREATE OR REPLACE TRIGGER immutable BEFORE UPDATE OR DELETE ON {schema}.events
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_change();
CREATE OR REPLACE TRIGGER kept BEFORE TRUNCATE ON {schema}.events
    FOR EACH STATEMENT EXECUTE FUNCTION {schema}.refuse_change();
INSERT INTO {schema}.origin SELECT gen_random_uuid(), 1 WHERE NOT EXISTS (SELECT FROM {schema}.origin);
"""
_IS_MADE = "SELECT to_regclass(%s) IS NOT NULL, current_setting('server_encoding')"


class Database:
    """Connections to the schema of one store."""

    def __init__(self, address: Secret, schema: str, size: int) -> None:
        self._address, self.schema, self._size = address, schema, size
        self._made: ConnectionPool[Connection] | None = None
        self._making = threading.Lock()
        self._statements: dict[str, bytes] = {}

    def create(self) -> None:
        """Make the tables unless they are there: statements that make them would wait for every writer."""
        with self.asking("make the tables"), self.connection() as lent, lent.transaction():
            lent.execute(_LOCK)
            is_made, encoding = lent.execute(_IS_MADE, [f"{self.schema}.origin"]).fetchone() or (False, "")
            if encoding != "UTF8":
                raise ConfigurationError(
                    f"the database is encoded as {encoding}, and events are UTF8",
                    hint="use a database with ENCODING 'UTF8'",
                )
            if not is_made:
                lent.execute(self.sql(_TABLES))

    @property
    def is_made(self) -> bool:
        """Whether the tables are there."""
        with self.asking("look for the tables"), self.connection() as lent:
            found = lent.execute(_IS_MADE, [f"{self.schema}.origin"]).fetchone()
        return bool(found and found[0])

    def sql(self, text: LiteralString) -> bytes:
        """Return a statement with the schema's name in it, put together once."""
        if text not in self._statements:
            named = sql.SQL(text).format(schema=sql.Identifier(self.schema))
            self._statements[text] = named.as_bytes(None)
        return self._statements[text]

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection, in autocommit."""
        pool = self._pool
        try:
            lent = pool.getconn()
        except PoolTimeout as error:
            raise StoreError(
                f"no connection to PostgreSQL within {pool.timeout:.0f} s",
                hint="check that it runs, and the address in settings.postgres",
            ) from error
        try:
            yield lent
        finally:
            pool.putconn(lent)

    @contextmanager
    def asking(self, what: str) -> Iterator[None]:
        """Turn the database's errors into ours."""
        try:
            yield
        except psycopg.Error as error:
            raise explained(what, error, self.schema) from error

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None

    @property
    def _pool(self) -> "ConnectionPool[Connection]":
        with self._making:
            if self._made is None:
                self._made = ConnectionPool(
                    self._address.value,
                    min_size=1,
                    max_size=self._size,
                    timeout=30,
                    kwargs={"autocommit": True, "application_name": f"penstock store {self.schema}"},
                    configure=_configure,
                    open=True,
                )
            return self._made


def explained(what: str, error: psycopg.Error, schema: str) -> Exception:
    """Return our error for the database's, sorted by what the reader can do about it."""
    said = error.diag.message_primary or " ".join(str(error).split())
    text = f"the event store {schema!r} did not {what}: {said}"
    match error:
        case psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName():
            return ConfigurationError(text, hint=f"make it first: penstock store create {schema}")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreError(text, hint="try again: with the same command id, nothing happens twice")
    return ConfigurationError(text, hint=error.diag.message_hint)


def _configure(connection: psycopg.Connection[Any]) -> None:
    connection.prepare_threshold = 1
    connection.execute("SET TimeZone = 'UTC'")
