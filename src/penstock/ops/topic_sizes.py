"""The size of topics on disk, where the broker's files are on this machine."""

import re
from dataclasses import replace
from pathlib import Path

from penstock.ops.model import System

_FOLDER = re.compile(r"(?P<topic>.+)-[0-9]+")


def topic_sizes(data: Path) -> dict[str, int]:
    """Return the bytes of each topic's records in a local broker's folder; nothing if there is none."""
    found: dict[str, int] = {}
    root = data / "kafka" / "data"
    for folder in root.iterdir() if root.is_dir() else ():
        named = _FOLDER.fullmatch(folder.name)
        if named is not None:
            found[named["topic"]] = found.get(named["topic"], 0) + _bytes(folder)
    return found


def with_sizes(system: System, sizes: dict[str, int]) -> System:
    """Return a system whose topics have their sizes, where these are known."""
    return replace(system, topics=tuple(replace(each, bytes=sizes.get(each.name)) for each in system.topics))


def _bytes(folder: Path) -> int:
    """The records of a partition: its indexes are made larger than what is in them."""
    try:
        return sum(each.stat().st_size for each in folder.glob("*.log"))
    except OSError:
        return 0  # it has just been deleted
