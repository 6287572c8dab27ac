"""What earlier labs could not remove: the next one does, by what their runs had written down."""

from collections.abc import Callable, Iterator
from typing import Any

from penstock.documents import JsonObject
from penstock.errors import PenstockError
from penstock.lab import removal
from penstock.lab.manifest import abandoned, folder_of
from penstock.local.lock import held
from penstock.settings import Settings

_LOCK = "sweeping"


def sweep(settings: Settings, report: Callable[[str], None]) -> None:
    """Remove what is in the manifests of runs whose lab is gone; what can't be removed is kept in them."""
    folder = folder_of(settings)
    if not any(abandoned(folder)):
        return
    with held(folder / _LOCK):
        for path, noted in abandoned(folder):
            troubles = [*_removed(settings, noted)]
            if troubles:
                report(f"run {path.stem} of an earlier lab has left something: {'; '.join(troubles)}")
            else:
                path.unlink(missing_ok=True)
                report(f"run {path.stem} of an earlier lab: what it had left is removed")


def _removed(settings: Settings, noted: JsonObject) -> Iterator[str]:
    """Remove what was noted, processes first; yield what went wrong."""
    removers: dict[str, Callable[[Any], None]] = {
        "processes": removal.kill_described,
        "platforms": lambda platform: removal.kill_services(**platform),
        "slots": lambda slot: removal.remove_slot(settings, **slot),
        "schemas": lambda name: removal.remove_schema(settings, name),
        "logs": lambda logs: removal.remove_logs(settings, **logs),
        "folders": removal.remove_folder,
    }
    for kind, remove in removers.items():
        for what in noted.get(kind, ()):
            try:
                remove(what)
            except PenstockError as error:
                yield str(error)
