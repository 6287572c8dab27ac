"""The replication slots of the databases that are known, whoever made them."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, cast

from penstock.capture.replication import connect
from penstock.ops.databases import databases
from penstock.ops.doctor.probes import Slot
from penstock.settings import Settings

_SLOTS = """
select pg_postmaster_start_time()::text, slot_name, active, coalesce(wal_status, 'none'),
       coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::int8
from pg_replication_slots where not temporary and not pg_is_in_recovery()
"""
_Row = tuple[str, str, bool, str, int]


class ServerSlot(NamedTuple):
    """A slot, and the server that has it: known by when it was started, to the microsecond."""

    server: str
    slot: Slot


def slot_questions(settings: Settings) -> dict[str, Callable[[], list[ServerSlot]]]:
    """Return a question for each database: one that does not answer leaves the others answered."""
    known = databases(settings)
    return {f"slots of {name or 'postgres'}": partial(_server_slots, settings, name) for name in known}


def distinct(found: Iterable[ServerSlot]) -> tuple[Slot, ...]:
    """Return each slot once: a server has the same ones in all of its databases."""
    known: dict[tuple[str, str], Slot] = {}
    for server, slot in found:
        known.setdefault((server, slot.name), slot)
    return tuple(known.values())


def _server_slots(settings: Settings, name: str | None) -> list[ServerSlot]:
    with connect(settings.dsn(name), "penstock doctor") as opened:
        rows = cast("list[_Row]", opened.execute(_SLOTS).fetchall())
    return [ServerSlot(row[0], Slot(row[1], name or "postgres", *row[2:])) for row in rows]
