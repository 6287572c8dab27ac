"""The folder of an index: its generations, and a pointer to the one that readers see."""

import os
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec

from penstock.errors import SinkError, TargetError
from penstock.events import new_id
from penstock.targets.search.description import Description
from penstock.targets.search.engine import make_index
from penstock.targets.search.lock import WriterLock

_UNFINISHED = "unfinished-"


class Pointer(msgspec.Struct, frozen=True):
    """Which generation is the current one, and from which folder it was swapped in, if it was."""

    generation: str
    swapped_from: str | None = None


@dataclass(frozen=True)
class IndexFolder:
    """Where things are below a path; nothing is open."""

    path: Path

    def locked(self, holder: str, wait: timedelta) -> WriterLock:
        """Become the one who may write here; refuse where no index was made."""
        if not self.path.is_dir():
            raise SinkError(
                f"there is no index at {self.path} on this machine",
                hint="give a path on a disk that Spark's driver and all executors share",
            )
        return WriterLock(self.path / "writer.lock", holder, wait)

    def pointer(self) -> Pointer | None:
        try:
            return msgspec.json.decode((self.path / "current").read_bytes(), type=Pointer)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, NotADirectoryError) as error:
            raise TargetError(
                f"{self.path} is not an index: {error}", hint="give another path, or remove what is there"
            ) from error

    def point(self, pointer: Pointer) -> None:
        """Replace the pointer, at once for readers."""
        write_durably(self.path / "current", msgspec.json.encode(pointer))

    def generation(self, name: str) -> Path:
        return self.path / "generations" / name

    def current(self) -> Path:
        """The generation that readers see."""
        pointer = self.pointer()
        if pointer is None:
            raise TargetError(
                f"there is no index at {self.path}", hint="check the path; a flow makes it when it first runs"
            )
        return self.generation(pointer.generation)

    def prepare(self, wanted: Description, holder: str, wait: timedelta) -> None:
        """Make the index if it is missing; refuse one that was made for other rows."""
        self.path.mkdir(parents=True, exist_ok=True)
        lock = self.locked(holder, wait)
        try:
            if self.pointer() is None:
                self._refuse_strangers()
                self.point(Pointer(self._make(wanted)))
            else:
                describe(self.current()).check_same(wanted, str(self.path))
        finally:
            lock.release()

    def remove_others(self) -> None:
        """Remove all generations but the current one."""
        pointer = self.pointer()
        for each in (self.path / "generations").iterdir():
            if pointer is None or each.name != pointer.generation:
                shutil.rmtree(each)

    def _make(self, description: Description) -> str:
        """Make a generation under another name first, so that none is there half."""
        name = new_id()
        made = self.generation(_UNFINISHED + name)
        for left in made.parent.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left)
        made.mkdir(parents=True)
        write_durably(made / "description.json", description.to_json())
        make_index(made, description)
        made.rename(self.generation(name))
        sync_folder(made.parent)
        return name

    def _refuse_strangers(self) -> None:
        known = {"writer.lock", "generations", "beside", "current.new"}
        strange = sorted(each.name for each in self.path.iterdir() if each.name not in known)
        if strange:
            raise TargetError(
                f"{self.path} is no index: it holds {strange[0]!r}", hint="give a path where nothing is yet"
            )


def describe(generation: Path) -> Description:
    """Return what a generation was made of."""
    return Description.from_json((generation / "description.json").read_bytes())


def write_durably(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, also after the machine has lost its power."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """See that names in a folder outlive a loss of power."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
