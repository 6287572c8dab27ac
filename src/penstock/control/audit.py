"""The audit log of actions: lines of JSON in the data folder, before each and with what came of it."""

import getpass
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from penstock.documents import JsonObject
from penstock.errors import PenstockError, SettingsError

T = TypeVar("T")
AUDIT = "actions.jsonl"
_LOGGER = logging.getLogger("penstock.control")
_LONGEST = 500  # characters of what an action is on, and of what came of it
_TAIL = 256 * 1024  # bytes that are looked at for the last lines


def recorded(write: Callable[[str], None], act: Callable[[], T], said: Callable[[T], str]) -> T:
    """Do something after it was written down that it begins; then write what came of it.

    What can't be written down is not begun; a failure of any kind is written down and raised. What was done
    is done, also where that can't be written down any more.
    """
    write("begun")
    try:
        done = act()
    except BaseException as error:
        message = error.message if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
        with suppress(PenstockError):  # it is the first failure that has to be known
            write(f"failed: {message}")
        raise
    try:
        write(said(done))
    except PenstockError as error:  # raised, it would be taken for a failure, and done once more
        _LOGGER.error("it is done, and not written down: %s", error.message)
    return done


def write_down(data: Path, action: str, subject: str, outcome: str, user: str | None = None) -> None:
    """Add a line: when, who, what, on what, and what came of it."""
    line = {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "user": user or getpass.getuser(),
        "action": action,
        "subject": subject[:_LONGEST],
        "outcome": outcome[:_LONGEST],
    }
    try:
        data.mkdir(parents=True, exist_ok=True)
        with (data / AUDIT).open("a") as log:
            log.write(json.dumps(line) + "\n")
    except OSError as error:
        raise SettingsError(
            f"the audit log {data / AUDIT} can't be written: {error.strerror or error}",
            hint="without it nothing is begun; let this user write there, or make room",
        ) from error


def last_lines(data: Path, most: int = 200) -> list[JsonObject]:
    """Return the last lines, the newest first; one that was cut off is left out."""
    file = data / AUDIT
    if not file.is_file():
        return []
    with file.open("rb") as log:
        start = max(0, file.stat().st_size - _TAIL)
        log.seek(start)
        lines = log.read().splitlines()[1 if start else 0 :]
    found = [_parsed(line) for line in lines[-most:]]
    return [each for each in reversed(found) if each is not None]


def _parsed(line: bytes) -> JsonObject | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
