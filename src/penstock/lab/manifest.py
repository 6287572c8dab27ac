"""What a run makes, written down before it is made: of a lab that was killed, the next one removes it."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import psutil

from penstock.control.process_identity import find, identity, is_over
from penstock.documents import Json, JsonObject
from penstock.local.files import write_whole
from penstock.settings import Settings

Kind = Literal["processes", "platforms", "folders", "slots", "schemas", "logs"]


class Manifest:
    """The file of one run; there is none as long as nothing was made."""

    def __init__(self, settings: Settings, run: str) -> None:
        self.path = folder_of(settings) / f"{run}.json"
        self._noted: dict[str, Any] = {}
        self._lock = threading.Lock()

    def note(self, kind: Kind, what: Json) -> None:
        """Write down what is about to be made."""
        with self._lock:
            if not self._noted:
                self._noted["lab"] = identity(psutil.Process())
            self._noted.setdefault(kind, []).append(what)
            write_whole(self.path, json.dumps(self._noted, indent=2) + "\n")

    def forget(self) -> None:
        """Nothing of the run is left."""
        self.path.unlink(missing_ok=True)


def folder_of(settings: Settings) -> Path:
    """Return the folder of all manifests."""
    return settings.data.absolute() / "lab"


def abandoned(folder: Path) -> Iterator[tuple[Path, JsonObject]]:
    """Yield the manifests of runs whose lab has ended without removing what they had made."""
    for path in sorted(folder.glob("*.json")):
        try:
            noted = json.loads(path.read_text())
            lab = find(noted["lab"])
        except (OSError, ValueError, KeyError, TypeError):  # gone meanwhile, or not one of ours
            continue
        if lab is None or is_over(lab):
            yield path, noted
