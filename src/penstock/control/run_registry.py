"""What runs on this machine: a file for each pipeline in the data folder, held by its process."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from penstock.control.process_identity import find, identity, is_over
from penstock.documents import JsonObject
from penstock.errors import FlowError
from penstock.settings import Settings

RUN = "run"  # what a process does with a pipeline unless it says something else
_STOPPABLE = (RUN, "replay")  # the others put a flow in another's place, and are to end by themselves


def shadow_of(pipeline: str, flow: str) -> str:
    """Return the name that the shadow of a flow runs by."""
    return f"{pipeline}.{flow}.shadow"


class RunRegistry:
    """Pipelines by the processes that hold them: those that run them, and those that replace a flow."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.data / "running"
        self._prefix = f"{settings.namespace}:" if settings.namespace else ""

    def process(self, name: str) -> psutil.Process | None:
        """Return the process that holds a pipeline, or a shadow, if one does."""
        return self._found(self._files().get(name))

    def stoppable(self, name: str) -> psutil.Process | None:
        """Return the process that runs a pipeline; refuse to stop one that replaces a flow of it."""
        found = self.process(name)
        if found is not None and self.what(name) not in _STOPPABLE:
            self.refuse_held(name)
        return found

    def what(self, name: str) -> str:
        """Return what the process does with it: `run`, or the command that replaces a flow."""
        return str(_read(self._files().get(name)).get("what", RUN))

    def names(self) -> list[str]:
        """Return everything that is held by a process that lives."""
        return sorted(name for name, file in self._files().items() if self._found(file) is not None)

    @contextmanager
    def holding(self, name: str, what: str = RUN) -> Iterator[None]:
        """Hold a pipeline for this process; refuse if another one does. Of two, one is first."""
        file = self._folder / f"{self._prefix}{name}.json"
        with self._locked():
            self.refuse_held(name)
            _write(file, identity(psutil.Process()) | {"what": what})
        try:
            yield
        finally:
            with self._locked():
                if _read(file).get("pid") == os.getpid():
                    file.unlink(missing_ok=True)

    def refuse_held(self, name: str) -> None:
        """Refuse what a process holds."""
        found = self.process(name)
        if found is None:
            return
        what = self.what(name)
        if what in _STOPPABLE:
            message, hint = f"pipeline {name!r} runs already", f"run `penstock stop {name}`"
        else:
            message, hint = f"pipeline {name!r} is held by a {what}", "let that end"
        raise FlowError(f"{message}, as process {found.pid}", hint=hint)

    def _files(self) -> dict[str, Path]:
        """The files by their names, among those that are there: a name is never made a path to read."""
        found = {each.stem: each for each in self._folder.glob("*.json")}
        return {
            stem.removeprefix(self._prefix): file
            for stem, file in found.items()
            if stem.startswith(self._prefix) and (self._prefix or ":" not in stem)
        }

    def _found(self, file: Path | None) -> psutil.Process | None:
        process = find(_read(file))
        return None if process is None or is_over(process) else process

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _read(file: Path | None) -> JsonObject:
    try:
        found = json.loads(file.read_text()) if file is not None else {}
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, document: JsonObject) -> None:
    """Write a file that is read at any moment: it is whole, or not there."""
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps(document))
    draft.replace(file)
