"""A view: a table that a flow writes, asked by its key, now or as of a time."""

from dataclasses import dataclass

from penstock.errors import TargetError
from penstock.targets import PostgresTable


@dataclass(frozen=True)
class View:
    """A table of PostgreSQL as clients see it.

    >>> View(PostgresTable("balances", key="account", write="upsert")).keys
    ('account',)

    A table that is upserted has one row of a key. In one to which rows are appended, those of a key are its
    versions: the last by `time`, and by `order` where times are equal, is the one that counts, and `at=` asks
    for the one that counted then. `history` is such a table for one that is upserted. Without a key, rows are
    known by their `id`.
    """

    table: PostgresTable
    name: str = ""
    history: PostgresTable | None = None
    time: str = "at"
    order: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.table.name)
        if "/" in self.name or not self.name.isprintable():
            raise TargetError(f"{self.name!r} is not a view's name", hint="use no slash")
        if self.history is not None and (
            self.history.keys != self.table.keys or self.history.write != "append"
        ):
            raise TargetError(
                f"view {self.name!r}: {self.history.name!r} is not its history",
                hint="a flow has to append every version of a row to it, with the same key",
            )

    @property
    def keys(self) -> tuple[str, ...]:
        return self.table.keys or ("id",)

    @property
    def versions(self) -> PostgresTable | None:
        """The table that has the versions of each key, if there is one."""
        return self.table if self.table.write == "append" and self.table.keys else self.history

    @property
    def has_history(self) -> bool:
        return self.versions is not None
