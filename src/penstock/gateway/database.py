"""The databases behind views: connections that only read, and give up in time."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from penstock.errors import ServiceError
from penstock.gateway.refusal import Refusal
from penstock.gateway.view_query import Columns, ViewQuery
from penstock.settings import Secret, Settings
from penstock.targets import PostgresTable

Connection = AsyncConnection[TupleRow]
_SIZE, _WAIT_S = 8, 5.0
_LARGEST = 4 * 2**20  # bytes of rows in one answer
# A plan that was prepared does not outlive a table that is rebuilt under its name.
_CLIENT = {"autocommit": True, "application_name": "penstock gateway", "prepare_threshold": None}
_SET = """
    SELECT set_config('TimeZone', 'UTC', false), set_config('default_transaction_read_only', 'on', false),
        set_config('statement_timeout', '5s', false)"""
_COLUMNS = """
    SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
        AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
Row = tuple[bytes, tuple[str, ...]]  # as JSON, and its key


class Databases:
    """A pool of connections for each database that a view is in."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pools: dict[Secret, AsyncConnectionPool[Connection]] = {}

    async def rows(self, query: ViewQuery) -> list[Row]:
        """Return the rows of a query, as JSON."""
        async with self._connection(query.table) as connection:
            columns = await self._columns(connection, query.table)
            async with connection.cursor() as cursor:
                found: Any = cursor.stream(query.statement(columns), query.values)
                async with aclosing(found) as rows:  # what is not read is cancelled
                    return await _bounded(rows)

    async def check(self, table: PostgresTable) -> None:
        """Refuse if the database of a table does not answer."""
        async with self._connection(table) as connection:
            await connection.execute("SELECT 1")

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()

    async def _columns(self, connection: Connection, table: PostgresTable) -> Columns:
        found: Columns = dict(await (await connection.execute(_COLUMNS, table.path)).fetchall())
        if not found:
            raise Refusal(
                404,
                "gateway.not-written",
                f"the table {table.name!r} is not there yet",
                hint="its flow makes it: `penstock run`",
            )
        return found

    @asynccontextmanager
    async def _connection(self, table: PostgresTable) -> AsyncIterator[Connection]:
        pool = await self._pool(table.address(self._settings))
        try:
            async with pool.connection() as connection:
                yield connection
        except PoolTimeout:
            raise ServiceError("the database did not answer", hint="is it up? try again") from None
        except psycopg.DataError as error:
            said = error.diag.message_primary or str(error)
            raise Refusal(422, "gateway.key-value", f"the key does not fit: {said}") from None
        except psycopg.errors.QueryCanceled:
            raise ServiceError("the query took too long", hint="an index on the key would help") from None
        except psycopg.Error as error:
            said = error.diag.message_primary or type(error).__name__
            raise ServiceError(f"the database refused: {said}", hint="see the view's table") from None

    async def _pool(self, address: Secret) -> "AsyncConnectionPool[Connection]":
        if address not in self._pools:
            made: Any = AsyncConnectionPool(
                address.value,
                min_size=1,
                max_size=_SIZE,
                timeout=_WAIT_S,
                open=False,
                configure=_configure,
                kwargs=_CLIENT,
            )
            self._pools[address] = made
            await made.open()
        return self._pools[address]


async def _bounded(rows: AsyncIterator[TupleRow]) -> list[Row]:
    """The rows of an answer, one of which may be as large as it is; all have to fit into memory."""
    found, size = list[Row](), 0
    async for text, *key in rows:
        found.append((text.encode(), tuple(key)))
        size += len(found[-1][0])
        if size > _LARGEST and len(found) > 1:
            message = f"the first {len(found)} rows are larger than {_LARGEST} bytes"
            raise Refusal(413, "gateway.rows", message, hint="ask for fewer of them: limit=")
    return found


async def _configure(connection: AsyncConnection[Any]) -> None:
    await connection.execute(_SET)
