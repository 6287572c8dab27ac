"""The application's own database: a table of users, in which some move."""

from collections.abc import Sequence
from typing import Any

import psycopg

from penstock.apps.enrichment.traffic import COUNTRIES, USERS, Move

Connection = psycopg.Connection[Any]
_TABLE = """
CREATE TABLE users (
    user_id bigint PRIMARY KEY,
    name text NOT NULL,
    country text NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp()
)"""
_FILL = "INSERT INTO users SELECT n, 'user ' || n, (%s::text[])[1 + n %% %s] FROM generate_series(0, %s) n"
_MOVE = """
INSERT INTO users VALUES (%s, 'user', %s)
ON CONFLICT (user_id) DO UPDATE SET country = excluded.country, since = excluded.since"""
_LEAVE = "DELETE FROM users WHERE user_id = %s"
_END = "SELECT (pg_current_wal_lsn() - '0/0')::bigint"


def create(connection: Connection) -> None:
    """Make the table, with all users in their first countries."""
    connection.execute(_TABLE)
    connection.execute(_FILL, (list(COUNTRIES), len(COUNTRIES), USERS - 1))


def perform(connection: Connection, moves: Sequence[Move]) -> None:
    """Change the rows of those who move, in one transaction."""
    with connection.transaction():
        for move in moves:
            if move.country is None:
                connection.execute(_LEAVE, (move.user_id,))
            else:
                connection.execute(_MOVE, (move.user_id, move.country))


def written(connection: Connection) -> int:
    """How far the database's log reaches now."""
    (end,) = connection.execute(_END).fetchone() or (0,)
    return int(end)
