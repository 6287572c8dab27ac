"""The folder of a background command: what it is, what it prints, and how it ended, across restarts."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import psutil

from penstock.control.command import DIFFERS, Command, CommandRun, State
from penstock.control.process_identity import find, identity, is_over
from penstock.documents import Json, JsonObject

LOG, OUTPUT, FORMER = "log", "output", "log.1"
GRACE = 60.0  # seconds until what was asked to end is killed
_COMMAND, _PROCESS, _CHILD, _ENDED = "command.json", "process.json", "child.json", "ended.json"
_STOP = "stop"  # a file: a signal would come too early for a process that is just starting
_TAIL, _LARGEST = 64 * 1024, 4 * 1024 * 1024  # bytes of a log that are looked at, and of a document
_STARTING = 15.0  # seconds until its process has to be there
_ERROR, _HINT = "error ", "→ "


class CommandFolder:
    """A folder by its path; others may read it while its process writes."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def made(cls, path: Path, command: Command, user: str) -> "CommandFolder":
        """Make the folder, for this user's eyes only: logs may quote events."""
        path.mkdir(parents=True, mode=0o700)
        found = cls(path)
        found._write(_COMMAND, asdict(command) | {"user": user, "began": time.time()})
        return found

    @property
    def command(self) -> Command:
        found = self._read(_COMMAND)
        known = {name: found[name] for name in Command.__dataclass_fields__}
        return Command(**known | {"words": tuple(found["words"]), "claims": tuple(found["claims"])})

    @property
    def user(self) -> str:
        return str(self._read(_COMMAND)["user"])

    @property
    def process(self) -> psutil.Process | None:
        """The process that watches it, if it lives."""
        return self._living(_PROCESS)

    def note_process(self, process: psutil.Process) -> None:
        self._write(_PROCESS, identity(process))

    def note_child(self, child: psutil.Process) -> None:
        """Note the process that does the work: it may outlive the one that watches it."""
        self._write(_CHILD, identity(child))

    def ask_to_stop(self) -> None:
        """Have its watcher end it; without one, it is asked itself."""
        (self.path / _STOP).touch()
        if self.process is None and (child := self._living(_CHILD)):
            with suppress(psutil.NoSuchProcess):
                child.terminate()

    @property
    def is_to_stop(self) -> bool:
        return (self.path / _STOP).exists()

    def note_end(self, code: int, *, stopped: bool) -> None:
        self._write(_ENDED, {"at": time.time(), "code": code, "stopped": stopped})

    def run(self) -> CommandRun:
        """Return what is known of it now."""
        written, command, ended = self._read(_COMMAND), self.command, self._read(_ENDED)
        user, began = str(written["user"]), float(written["began"])
        if not ended and self._is_at_work(began):
            return CommandRun(self.path.name, command, user, began, "running", progress=self._progress())
        ended = ended or self._read(_ENDED)  # it may have ended meanwhile
        if not ended:
            error, hint = "its process is gone, and has not said how it ended", "see its log"
            return CommandRun(self.path.name, command, user, began, "failed", error=error, hint=hint)
        state, code = _state(command, ended), int(ended["code"])
        error, hint = ("", "") if state in ("done", "stopped") else self._error(code)
        return CommandRun(self.path.name, command, user, began, state, float(ended["at"]), code, error, hint)

    def log(self) -> str:
        """Return the end of what it has written for people."""
        return self._tail(LOG) or self._tail(FORMER)

    def document(self) -> Json | None:
        """Return what it has printed for programs, if that is whole."""
        file = self.path / OUTPUT
        with suppress(OSError, ValueError):
            if file.stat().st_size <= _LARGEST:
                return json.loads(file.read_text())
        return None

    def _is_at_work(self, began: float) -> bool:
        if not self._read(_PROCESS):
            return time.time() - began < _STARTING
        return self.process is not None or self._living(_CHILD) is not None

    def _living(self, name: str) -> psutil.Process | None:
        found = find(self._read(name))
        return None if found is None or is_over(found) else found

    def _progress(self) -> str:
        return next(self._last_lines(), "")

    def _error(self, code: int) -> tuple[str, str]:
        """What it has said last: an error with its hint, or whatever it was."""
        hint = last = ""
        for line in self._last_lines():
            text = line.strip()
            last = last or text
            if text.startswith(_HINT):
                hint = text.removeprefix(_HINT)
            if text.startswith(_ERROR):
                return text.removeprefix(_ERROR).partition(": ")[2] or text, hint
        return last or _ending(code), ""

    def _last_lines(self) -> Iterator[str]:
        yield from (each for each in reversed(self.log().splitlines()) if each.strip())

    def _tail(self, name: str) -> str:
        try:
            with (self.path / name).open("rb") as log:
                log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL))
                return log.read(_TAIL).decode(errors="replace")
        except OSError:
            return ""

    def _read(self, name: str) -> JsonObject:
        try:
            found = json.loads((self.path / name).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _write(self, name: str, document: JsonObject) -> None:
        draft = self.path / f"{name}.draft"
        draft.write_text(json.dumps(document))
        draft.replace(self.path / name)


def _state(command: Command, ended: JsonObject) -> State:
    if ended["stopped"]:
        return "stopped"
    if ended["code"] == DIFFERS and command.prints_document:
        return "differs"
    return "failed" if ended["code"] else "done"


def _ending(code: int) -> str:
    return f"it was ended by signal {-code}" if code < 0 else f"it ended with code {code}"
