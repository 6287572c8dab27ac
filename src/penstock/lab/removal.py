"""How what a run has made is removed; what is not there any more is no error."""

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from penstock.control.process_identity import find
from penstock.documents import JsonObject
from penstock.errors import PenstockError
from penstock.local import Platform
from penstock.log import Broker, Groups
from penstock.settings import Settings

_PATIENCE = 10.0  # seconds
_HOLDER = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
_BOUNDED = "SET lock_timeout = '10s'; SET statement_timeout = '20s'"
_NEXT_START = "or starting `penstock lab` again"


def kill(found: Sequence[psutil.Process]) -> None:
    """End processes with -9, and wait until they are gone."""
    for each in found:
        with suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(found, _PATIENCE)


def kill_described(described: JsonObject) -> None:
    """End a process and all that it has started, if it is still the one that was described."""
    process = find(described)
    if process is None:
        return
    with suppress(psutil.NoSuchProcess):
        kill([process, *process.children(recursive=True)])


def kill_services(data: str, services: Sequence[str]) -> None:
    """End the services whose data is in a folder that nobody needs any more."""
    found = []
    for each in Platform(Path(data), services=tuple(services)).status():
        with suppress(psutil.NoSuchProcess):
            found += [psutil.Process(each.pid)] if each.pid else []
    kill(found)


def remove_folder(path: Path | str) -> None:
    """Remove a folder with all that is in it."""
    shutil.rmtree(path, ignore_errors=True)


def remove_logs(settings: Settings, topics: Sequence[str], groups: Sequence[str]) -> None:
    """Delete the groups and the topics whose names begin so.

    A group with a member that was killed can't be deleted yet: it goes with the topics that it has read.
    """
    broker, known = Broker(settings), Groups(settings)
    found = [each for each in broker.topics() if each.startswith(tuple(topics))]
    for group in [each.group for each in known.all() if each.group.startswith(tuple(groups))]:
        with suppress(PenstockError):
            known.delete(group)
    for name in found:
        if broker.exists(name):
            broker.delete(name)


def remove_schema(settings: Settings, name: str) -> None:
    """Drop a schema, on a connection of its own: those of the run may be broken or at work."""
    statement = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
    with _connected(settings, f"schema {name!r}", lambda: statement.as_string()) as connection:
        connection.execute(statement)


def remove_slot(settings: Settings, slot: str, publication: str) -> None:
    """Drop a replication slot and its publication, whoever reads it."""
    command = f"SELECT pg_drop_replication_slot('{slot}')"
    with _connected(settings, f"replication slot {slot!r}", lambda: command) as connection:
        _drop_slot(connection, slot)
        statement = sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(publication))
        connection.execute(statement)


def _drop_slot(connection: psycopg.Connection, slot: str) -> None:
    """End the process of PostgreSQL that serves the slot's reader, and drop the slot."""
    deadline = time.monotonic() + _PATIENCE
    while (row := connection.execute(_HOLDER, [slot]).fetchone()) is not None:
        try:
            if row[0] is not None:
                connection.execute("SELECT pg_terminate_backend(%s)", [row[0]])
            connection.execute("SELECT pg_drop_replication_slot(%s)", [slot])
        except psycopg.errors.ObjectInUse:  # it takes a moment to end
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@contextmanager
def _connected(settings: Settings, what: str, command: Callable[[], str]) -> Iterator[psycopg.Connection]:
    """Connect anew; an error says what is left, and what removes it."""
    try:
        address = settings.dsn().value
        with psycopg.connect(address, autocommit=True, connect_timeout=int(_PATIENCE)) as connection:
            connection.execute(_BOUNDED)
            yield connection
    except psycopg.Error as error:
        raise PenstockError(
            f"{what} is left in PostgreSQL: {error}",
            hint=f'`psql -c "{command()}"` removes it, {_NEXT_START}',
        ) from error
