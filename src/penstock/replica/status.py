"""How a replica is: its process, and how far behind the log it is."""

import time
from dataclasses import dataclass
from datetime import datetime

import psycopg

from penstock.capture import Store
from penstock.capture.replication import connect
from penstock.errors import ReplicaError
from penstock.log import Broker
from penstock.replica.explained import explained
from penstock.replica.ledger import Ledger, label, names
from penstock.replica.replica import Replica
from penstock.replica.session import lag
from penstock.settings import Settings


@dataclass(frozen=True)
class ReplicaStatus:
    """A replica at one moment; `lag` is in records, at most, and `seconds` since the last applied commit."""

    replica: str
    capture: str
    schema: str
    state: str
    process: str
    tables: int
    lag: int
    seconds: float
    last_event: datetime | None
    error: str
    connection: str | None = None  # of the settings; the local database without it


def status(settings: Settings, name: str, connection: str | None) -> ReplicaStatus:
    """Ask a replica's database and the log about it."""
    with explained(), connect(settings.dsn(connection), f"penstock replica {name} status") as opened:
        ledger = Ledger(opened, label(settings.namespace, name))
        known = _known(ledger, settings.namespace, name, connection)
        places, said, tables = ledger.places(), ledger.report(), len(ledger.tables())
        is_held = ledger.is_held()
    capture = Store(settings).get(known.capture)
    topics = {capture.topic(path) for path in capture.tables}
    behind = lag(Broker(settings), {each: places[each].offsets if each in places else {} for each in topics})
    seen = said["seen"]
    return ReplicaStatus(
        replica=name,
        capture=known.capture,
        schema=known.schema,
        state=_state(said["state"], is_held=is_held),
        process=said["process"],
        tables=tables,
        lag=behind,
        seconds=round(time.time() - seen.timestamp(), 1) if behind and seen else 0.0,
        last_event=seen,
        error=said["error"],
        connection=connection,
    )


def declared(settings: Settings, name: str, connection: str | None) -> Replica:
    """Return a replica as it was first run, or say which ones there are."""
    with explained(), connect(settings.dsn(connection), f"penstock replica {name}") as opened:
        ledger = Ledger(opened, label(settings.namespace, name))
        return _known(ledger, settings.namespace, name, connection)


def _known(ledger: Ledger, namespace: str, name: str, connection: str | None) -> Replica:
    found = ledger.declared(connection) if ledger.is_there() else None
    if found is None:
        there = ", ".join(names(ledger.connection, namespace)) if ledger.is_there() else ""
        raise ReplicaError(
            f"there is no replica {name!r} in this database",
            hint=f"known are {there or 'none'}; `penstock replica run {name} --capture …` makes one",
        )
    return found


def statuses(settings: Settings, connection: str | None) -> list[ReplicaStatus]:
    """Return how all replicas in a database are."""
    with explained(), connect(settings.dsn(connection), "penstock replica list") as opened:
        try:
            found = names(opened, settings.namespace)
        except psycopg.errors.UndefinedTable:
            return []
    return [status(settings, name, connection) for name in found]


def _state(said: str, *, is_held: bool) -> str:
    """What a process said last does not hold any more if it was killed."""
    if is_held:
        return "running"
    return "not running" if said == "running" else said
