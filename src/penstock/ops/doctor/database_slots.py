"""The replication slots of the databases that are known, whoever made them."""

from typing import cast

from penstock.capture.replication import connect
from penstock.ops.doctor.probes import Slot
from penstock.settings import Settings, reveal

_SLOTS = """
select slot_name, active, coalesce(wal_status, 'none'),
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::int8
from pg_replication_slots where not temporary and not pg_is_in_recovery()
"""


def database_slots(settings: Settings) -> tuple[Slot, ...]:
    """Return the slots of all databases of PostgreSQL that the settings know."""
    found: dict[str, Slot] = {}
    for name in _connections(settings):
        with connect(settings.dsn(name), "penstock doctor") as opened:
            rows = cast("list[tuple[str, bool, str, int]]", opened.execute(_SLOTS).fetchall())
        found = {row[0]: Slot(row[0], name or "postgres", *row[1:]) for row in rows} | found
    return tuple(found.values())


def _connections(settings: Settings) -> list[str | None]:
    named = {name: reveal(each["dsn"]) for name, each in settings.connections.items() if "dsn" in each}
    known = [name for name, dsn in named.items() if dsn.startswith(("postgres://", "postgresql://"))]
    return [*([None] if settings.postgres is not None else []), *known]
