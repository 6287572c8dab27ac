"""The background commands of a data folder: each is a process of its own, which outlives the console."""

import fcntl
import os
import secrets
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from penstock.control.command import Command, CommandRun
from penstock.control.command_folder import GRACE, CommandFolder
from penstock.errors import FlowError, SettingsError
from penstock.settings import Settings

_AT_ONCE, _AT_MOST = 4, 40  # that work for a while, each with a Spark of its own; and of all kinds
_KEPT = 60  # that have ended
_OWN = "PENSTOCK_CONSOLE_"  # variables that are the console's: no pipeline needs its token
_PLAIN = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUNBUFFERED": "1"}
_PATIENCE = GRACE + 10.0  # seconds within which a command that is stopped has ended, or was killed


class Commands:
    """Starts commands, and knows those that were started before, by this process or another one."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._folder = settings, settings.data / "commands"
        self._over: dict[str, CommandRun] = {}  # what has ended stays as it is

    def start(self, command: Command, user: str) -> str:
        """Start a command, and return its id; refuse one that another stands in the way of."""
        with self._locked():
            self.refuse_beside(command)
            self._make_room()
            id = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
            folder = CommandFolder.made(self._folder / id, command, user)
            process = self._begun(folder)
            _note(process, folder)
        threading.Thread(target=process.wait, daemon=True).start()  # so that it leaves no zombie
        return id

    def refuse_beside(self, command: Command) -> None:
        """Refuse a command while another is at work on the same, or too many are at work."""
        running = [each for each in self.all() if each.is_running]
        for each in running:
            if {*each.command.claims} & {*command.claims}:
                raise FlowError(
                    f"`{each.command.line}` is at work on it already, begun by {each.user}",
                    hint="wait until it has ended, or stop it",
                )
        bounded = sum(each.command.name != "pipeline.start" for each in running)
        if len(running) >= _AT_MOST or (command.name != "pipeline.start" and bounded >= _AT_ONCE):
            raise FlowError(
                f"{len(running)} commands are at work already", hint="wait until one of them has ended"
            )

    def all(self) -> list[CommandRun]:
        """Return all commands that are known, the newest first."""
        return [run for id in self._ids() if (run := self._run(id)) is not None]

    def folder(self, id: str) -> CommandFolder:
        """Return the folder of a command, by a name among those that are there."""
        if id not in self._ids():
            raise SettingsError(f"there is no command {id[:50]!r}", hint="it may be too long ago")
        return CommandFolder(self._folder / id)

    def run(self, id: str) -> CommandRun:
        """Return what is known of a command."""
        self.folder(id)
        found = self._run(id)
        if found is None:
            raise SettingsError(f"there is no command {id[:50]!r}", hint="it may be too long ago")
        return found

    def stop(self, id: str) -> None:
        """Ask a command to end, and wait until it has."""
        self.folder(id).ask_to_stop()
        deadline = time.monotonic() + _PATIENCE
        while self.run(id).is_running:
            if time.monotonic() > deadline:
                raise FlowError(f"it did not end within {_PATIENCE:.0f} s")
            time.sleep(0.1)

    def _run(self, id: str) -> CommandRun | None:
        if id not in self._over:
            try:
                found = CommandFolder(self._folder / id).run()
            except (KeyError, TypeError, ValueError):  # half of it was removed just now, or never written
                return None
            if found.is_running:
                return found
            self._over[id] = found
        return self._over[id]

    def _ids(self) -> list[str]:
        with suppress(OSError):
            return sorted((each.name for each in self._folder.iterdir() if each.is_dir()), reverse=True)
        return []

    def _begun(self, folder: CommandFolder) -> "subprocess.Popen[bytes]":
        given = {**os.environ, **self._settings.environment()}
        kept = {name: value for name, value in given.items() if not name.startswith(_OWN)}
        return subprocess.Popen(
            [sys.executable, "-m", "penstock.control.command_process", str(folder.path.absolute())],
            env=kept | _PLAIN,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C at the console is not meant for it
        )

    def _make_room(self) -> None:
        over = [each.id for each in self.all() if not each.is_running]
        for id in over[_KEPT:]:
            self._over.pop(id, None)
            shutil.rmtree(self._folder / id, ignore_errors=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _note(process: "subprocess.Popen[bytes]", folder: CommandFolder) -> None:
    """Note a command's process; one that nobody could find again must not go on."""
    try:
        folder.note_process(psutil.Process(process.pid))
    except (OSError, psutil.Error):
        process.kill()
        raise
