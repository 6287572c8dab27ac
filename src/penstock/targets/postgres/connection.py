"""Connections to PostgreSQL that notice a dead peer, and its errors in our words, without the address."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from penstock.errors import DataError, PenstockError, SettingsError, SinkError, TargetError
from penstock.settings import Secret

Connection = psycopg.Connection[TupleRow]
_CLIENT = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
# The server, too, has to notice: a dead writer's locks would keep its successor waiting.
_SERVER = {
    "TimeZone": "UTC",
    "idle_in_transaction_session_timeout": "90s",
    "client_connection_check_interval": "5s",
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}
# A commit that the server may forget is none: the checkpoint would go on without the batch.
_SET = """
    SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS each (name, value)
    UNION ALL
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') = 'off'"""


def connect(address: Secret, sink: str) -> Connection:
    """Connect for a sink; what the address itself says wins over our settings."""
    own = make_conninfo("", application_name=f"penstock {sink}", **_CLIENT)
    options = make_conninfo(own, **_parsed(address))
    try:
        connection = psycopg.connect(options, autocommit=True)
    except psycopg.Error as error:
        raise _unreachable(error) from None
    connection.isolation_level = IsolationLevel.READ_COMMITTED
    with asking("set up a connection"):
        connection.execute(_SET, [list(_SERVER), list(_SERVER.values())])
    return connection


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Turn the database's errors into ours: what was asked, what it said, what to do."""
    try:
        yield
    except psycopg.Error as error:
        raise explain(what, error) from error


def explain(what: str, error: psycopg.Error) -> PenstockError:
    """Return our error for the database's, sorted by what the reader can do about it."""
    detail = f" ({error.diag.message_detail})" if error.diag.message_detail else ""
    said = error.diag.message_primary or " ".join(str(error).split())
    text = f"PostgreSQL did not {what}: {said}{detail}"
    match error:
        case psycopg.DataError() | psycopg.IntegrityError():
            place = ", ".join((error.diag.context or "").splitlines())
            return DataError(
                f"{text}; {place}" if place else text,
                hint="fix the flow or the data; the batch was not written",
            )
        case psycopg.ProgrammingError():
            return TargetError(text, hint="compare the table and the role's rights with the flow's results")
    return SinkError(text, hint="the batch is written again")


def _parsed(address: Secret) -> dict[str, str | int | None]:
    try:
        return {**conninfo_to_dict(address.value), "client_encoding": "utf8"}
    except psycopg.Error:
        raise SettingsError(
            "the address of PostgreSQL can't be read",
            hint="write it as postgresql://user:password@host:5432/database, with special characters as %XX",
        ) from None


def _unreachable(error: psycopg.Error) -> PenstockError:
    """Return only what the server or the network said: the client quotes pieces of the address."""
    _, failed, said = str(error).rpartition("failed: ")
    cause = said.splitlines()[0] if failed else "the address leads nowhere"
    return SinkError(
        f"PostgreSQL can't be reached: {cause}",
        hint="check that it runs, and the address in settings.postgres",
    )
