"""A Delta table that takes a flow's results, as it is declared."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, get_args

from penstock.durations import duration
from penstock.errors import TargetError

Write = Literal["append", "upsert"]


@dataclass(frozen=True)
class DeclaredTable:
    """A table and the way rows get into it, as `LakeTable` says; it knows of no sink."""

    path: str
    key: str | tuple[str, ...] | None = None
    write: Write = "append"
    partition_by: str | tuple[str, ...] = ()
    columns: tuple[str, ...] | None = None
    compact: int = 100
    retention: str | timedelta = "1 day"

    def __post_init__(self) -> None:
        if self.write not in get_args(Write):
            raise TargetError(f"{self.path}: write is {self.write!r}, expected 'append' or 'upsert'")
        if self.write == "upsert" and not self.keys:
            raise TargetError(f"{self.path}: upsert needs a key", hint="give key=, or write='append'")
        if self.compact < 0:
            raise TargetError(
                f"{self.path}: compact is {self.compact}", hint="give a number of commits, or 0"
            )
        duration(self.retention)
        self._check_path()
        for what, names in (("key", self.keys), ("partition_by", self.partitions)):
            self._check_names(what, names)

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else self.key or ()

    @property
    def partitions(self) -> tuple[str, ...]:
        return (self.partition_by,) if isinstance(self.partition_by, str) else self.partition_by

    @property
    def root(self) -> Path:
        """The table's folder, from wherever it is looked at."""
        return Path(self.path.removeprefix("file://")).absolute()

    def _check_path(self) -> None:
        place = self.path.removeprefix("file://")
        if "://" in place:
            raise TargetError(
                f"{self.path!r} is in an object store, where a lake table can't be written yet",
                hint="name a folder that the driver and all executors share",
            )
        if not place.strip("/. "):
            raise TargetError(f"{self.path!r} is not a folder for a table", hint="name one of its own")

    def _check_names(self, what: str, names: tuple[str, ...]) -> None:
        if len(set(names)) < len(names):
            raise TargetError(f"{self.path}: {what} {names!r} names a column twice")
        left_out = set(names) - set(self.columns or names)
        if left_out:
            raise TargetError(f"{self.path}: {what} {min(left_out)!r} is not among columns={self.columns!r}")
