"""How a capture is: its process, its slot, and how far behind it is."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.capture.database import open_database
from penstock.capture.position import TableProgress
from penstock.capture.store import Store
from penstock.errors import PenstockError
from penstock.settings import Settings


@dataclass(frozen=True)
class CaptureStatus:
    """A capture at one moment; `behind` and `retained` are bytes of the database's log."""

    capture: str
    state: str
    process: str
    slot: str
    behind: int | None
    retained: int | None
    seconds: float | None
    changes: int
    last_event: datetime | None
    snapshot: str
    error: str


def status(settings: Settings, name: str) -> CaptureStatus:
    """Ask the log and the database about a capture; a database that is not there is an error in it."""
    store = Store(settings)
    capture, state, position = store.get(name), store.state(name), store.position(name)
    slot, error = None, state.error
    try:
        with open_database(settings, capture) as database:
            slot = database.slot(position)
    except PenstockError as refused:
        error = error or str(refused)
    seen = position.seen if position else 0
    is_known = slot is not None and slot.behind is not None
    is_behind = is_known and slot is not None and bool(slot.behind) and seen > 0
    return CaptureStatus(
        capture=name,
        state="running" if slot is not None and slot.holder else _resting(state.state),
        process=state.process,
        slot=slot.status if slot else "none",
        behind=slot.behind if slot else None,
        retained=slot.retained if slot else None,
        seconds=round(time.time() - seen / 1e6, 1) if is_behind else 0.0 if is_known else None,
        changes=position.changes if position else 0,
        last_event=datetime.fromtimestamp(seen / 1e6, UTC) if seen else None,
        snapshot=snapshot_progress(position.tables.values()) if position else "not begun",
        error=error,
    )


def snapshot_progress(tables: Iterable[TableProgress]) -> str:
    """Say how much of the snapshot is written."""
    found = list(tables)
    if all(each.done for each in found):
        return "done"
    rows, about = sum(each.rows for each in found), sum(max(each.about, each.rows) for each in found)
    done = sum(each.done for each in found)
    return f"{rows:,} of about {about:,} rows, {done} of {len(found)} tables"


def _resting(state: str) -> str:
    """What a process said last does not hold any more if it has not let go of the slot by itself."""
    return "not running" if state == "running" else state
