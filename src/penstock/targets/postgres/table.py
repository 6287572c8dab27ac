"""A table that takes a flow's results, as it is declared."""

import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from psycopg.sql import Identifier

from penstock.errors import SettingsError, TargetError
from penstock.settings import Secret, Settings, reveal

Write = Literal["append", "upsert"]
Repeated = Literal["skip", "refuse"]
_NAME = re.compile(r"[^\W\d][\w$-]*")
_LONGEST = 63  # bytes; PostgreSQL cuts longer names off without a word


@dataclass(frozen=True)
class DeclaredTable:
    """A table and the way rows get into it, as `PostgresTable` says; it knows of no sink."""

    name: str
    key: str | tuple[str, ...] | None = None
    write: Write = "append"
    repeated: Repeated = "skip"
    dsn: str | Secret | None = field(default=None, repr=False)
    columns: tuple[str, ...] | None = None
    connection: str | None = None
    like: str | None = field(default=None, repr=False)  # the table that it is made after, if it is missing

    def __post_init__(self) -> None:
        if self.write not in get_args(Write):
            raise TargetError(f"{self.name}: write is {self.write!r}, expected 'append' or 'upsert'")
        if self.repeated not in get_args(Repeated):
            raise TargetError(f"{self.name}: repeated is {self.repeated!r}, expected 'skip' or 'refuse'")
        if self.write == "upsert" and not self.keys:
            raise TargetError(f"{self.name}: upsert needs a key", hint="give key=, or write='append'")
        if len(set(self.keys)) < len(self.keys):
            raise TargetError(f"{self.name}: the key {self.keys!r} names a column twice")
        if self.dsn is not None and self.connection is not None:
            raise TargetError(f"{self.name}: it has a dsn and a connection", hint="give one of them")
        self._check_name()
        for key in self.keys:
            check_column(self.name, key)
        left_out = set(self.keys) - set(self.columns or self.keys)
        if left_out:
            raise TargetError(f"{self.name}: the key {min(left_out)!r} is not among columns={self.columns!r}")
        if isinstance(self.dsn, str):
            object.__setattr__(self, "dsn", Secret(self.dsn))

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key,) if isinstance(self.key, str) else self.key or ()

    @property
    def path(self) -> tuple[str, str]:
        """The schema and the name in it."""
        schema, dot, name = self.name.rpartition(".")
        return (schema, name) if dot else ("public", name)

    @property
    def identifier(self) -> Identifier:
        return Identifier(*self.path)

    def address(self, settings: Settings) -> Secret:
        """Return where the database is; never log it."""
        if self.dsn is not None and reveal(self.dsn):
            return Secret(reveal(self.dsn))
        try:
            return settings.dsn(self.connection)
        except SettingsError as error:
            raise SettingsError(f"table {self.name!r}: {error.message}", hint=error.hint) from error

    def _check_name(self) -> None:
        for part in self.path:
            if not _NAME.fullmatch(part) or len(part.encode()) > _LONGEST:
                raise TargetError(
                    f"{self.name!r} is not a table name",
                    hint=f"a name or schema.name of letters, digits, _, $ and -, up to {_LONGEST} bytes each",
                )
        if self.path[0] == "penstock" or self.path[0].startswith("pg_"):
            raise TargetError(f"{self.name!r}: the schema {self.path[0]!r} is reserved", hint="use another")


def check_column(table: str, name: str) -> None:
    """Refuse a column that PostgreSQL would not take under its name."""
    if not name or "\0" in name or len(name.encode()) > _LONGEST:
        raise TargetError(
            f"{table}: {name!r} is not a column name", hint=f"use 1 to {_LONGEST} bytes without a NUL"
        )
