"""Files and folders that are made whole or not at all, and the ends of long files."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_TAIL = 64 * 1024


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one step; it is readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.touch(0o600)
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def draft(folder: Path) -> Iterator[Path]:
    """Give a new folder inside `folder`, to be filled and moved into place; then remove it.

    Each attempt has one of its own: the helper of a killed attempt may still be writing to the last.
    """
    try:
        yield Path(tempfile.mkdtemp(prefix="new-", dir=folder))
    finally:
        for remains in folder.glob("new-*"):
            shutil.rmtree(remains, ignore_errors=True)


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last lines of a file, or none if it isn't there."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL - count * 200))
            return file.read().decode(errors="replace").splitlines()[-count:] if count > 0 else []
    except FileNotFoundError:
        return []


def keep_below(path: Path, size: int) -> None:
    """Set a file that has grown past `size` bytes aside as `<name>.1`."""
    if path.exists() and path.stat().st_size > size:
        path.replace(path.with_name(f"{path.name}.1"))
