"""Ports on loopback: the one demanded, the one used last time, the usual one, or any that is free."""

import socket
from collections.abc import Iterable
from pathlib import Path

from penstock.errors import SettingsError

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Say whether a server could listen on `port` now."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def is_open(port: int) -> bool:
    """Say whether somebody listens on `port`."""
    with socket.socket() as trial:
        trial.settimeout(1)
        return trial.connect_ex((LOOPBACK, port)) == 0


def any_free() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as trial:
        trial.bind((LOOPBACK, 0))
        return int(trial.getsockname()[1])


def choose(service: str, demanded: int | None, preferred: Iterable[int | None]) -> int:
    """Return the demanded port or fail; if none is demanded, the first preferred one that is free, or any."""
    if demanded is None:
        return next((port for port in preferred if port and is_free(port)), None) or any_free()
    if not 0 < demanded < 65536:
        raise SettingsError(f"port {demanded} for {service} is not between 1 and 65535")
    if not is_free(demanded):
        raise SettingsError(
            f"port {demanded} for {service} is taken by another program or not allowed",
            hint="choose another, or leave the option out and a free one is chosen",
        )
    return demanded


def remembered(path: Path) -> int | None:
    """Return the port written at `path`, if one is."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
