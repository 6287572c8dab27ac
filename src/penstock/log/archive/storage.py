"""Where an archive's files are: a folder, or a bucket that speaks S3's interface."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from penstock.errors import ArchiveError, StorageError
from penstock.points import reach
from penstock.settings import Settings, reveal

S3 = "s3://"
TEMPORARY = ".tmp"


class Storage(ABC):
    """Files by name below a root; a file that is there is whole."""

    def __init__(self, files: fs.FileSystem, root: str, address: str) -> None:
        self._files, self._root, self.address = files, root, address

    def names(self, folder: str) -> list[str]:
        """Return the names of a folder's files; none where there is no folder."""
        with self._asking(f"list {folder!r}"):
            found = self._files.get_file_info(fs.FileSelector(self._path(folder), allow_not_found=True))
        return sorted(each.base_name for each in found if each.type == fs.FileType.File)

    def open(self, name: str) -> pa.NativeFile:
        """Open a file to be read at any place in it."""
        with self._asking(f"read {name!r}"):
            return self._files.open_input_file(self._path(name))

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; None if there is no such file."""
        with self._asking(f"read {name!r}"):
            if self._files.get_file_info(self._path(name)).type != fs.FileType.File:
                return None
            with self._files.open_input_file(self._path(name)) as file:
                return bytes(file.read())

    @abstractmethod
    def put(self, name: str, content: bytes) -> None:
        """Make a file, or replace it; whatever is killed, it is there as a whole or not at all."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file."""
        with self._asking(f"remove {name!r}"):
            self._files.delete_file(self._path(name))

    @abstractmethod
    def uri(self, name: str) -> str:
        """Return a file's address as Spark takes it."""
        ...

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise StorageError(f"can't {what} in {self.address}: {error}") from error


class Disk(Storage):
    """A folder of a file system; its files are written beside their place, and renamed."""

    def __init__(self, root: str) -> None:
        super().__init__(fs.LocalFileSystem(), root, root)

    def names(self, folder: str) -> list[str]:
        found = super().names(folder)
        if not found and not Path(self._root).is_dir():
            raise StorageError(f"{self.address} is not there", hint="is the disk mounted?")
        return found

    def put(self, name: str, content: bytes) -> None:
        path = Path(self._path(name))
        temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
        with self._asking(f"write {name!r}"):
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            reach("archive.temporary", path.name)
            temporary.rename(path)
            _sync_folder(path.parent)

    def uri(self, name: str) -> str:
        return f"file://{self._path(name)}"  # as it is: Hadoop takes what is quoted for a part of the name


class Bucket(Storage):
    """A bucket of S3's interface, where a file appears when all of it was taken."""

    def __init__(self, address: str, settings: Settings, connection: str | None) -> None:
        super().__init__(_s3(settings, connection), address.removeprefix(S3).strip("/"), address)

    def put(self, name: str, content: bytes) -> None:
        with self._asking(f"write {name!r}"), self._files.open_output_stream(self._path(name)) as file:
            file.write(content)

    def uri(self, name: str) -> str:
        return f"s3a://{self._path(name)}"


def open_storage(address: str, settings: Settings, connection: str | None = None) -> Storage:
    """Return the storage of an address: a folder, or s3://bucket/prefix by a connection of the settings."""
    return Bucket(address, settings, connection) if address.startswith(S3) else Disk(address)


def _s3(settings: Settings, connection: str | None) -> fs.S3FileSystem:
    """Without a connection, the keys are those that AWS's own clients would take."""
    if connection is None:
        return fs.S3FileSystem()
    given = {name: reveal(value) for name, value in settings.connection(connection).items()}
    known = {"url": "endpoint_override", "region": "region"}
    known |= {"access_key": "access_key", "secret_key": "secret_key", "session_token": "session_token"}
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise ArchiveError(
            f"connection {connection!r} has {unknown[0]!r}, which S3 does not know",
            hint=f"known are {', '.join(known)}",
        )
    return fs.S3FileSystem(**{known[name]: value for name, value in given.items()})


def _sync_folder(folder: Path) -> None:
    """A name is on the disk for sure only when its folder is."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
