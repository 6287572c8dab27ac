"""The tables of a capture: how much of the snapshot of each is written."""

from penstock.capture import Store
from penstock.documents import JsonObject
from penstock.settings import Settings


def capture_tables(settings: Settings, name: str) -> list[JsonObject]:
    """Return the progress of each table; none before the snapshot begins."""
    position = Store(settings).position(name)
    found = position.tables.items() if position is not None else ()
    return [
        {"table": path, "rows": each.rows, "about": max(each.about, each.rows), "done": each.done}
        for path, each in sorted(found)
    ]
