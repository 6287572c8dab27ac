"""A scenario: what is in the database before a capture begins, and what is done to it afterwards."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import psycopg
from psycopg import sql

FOLDER = Path(__file__).with_name("scenarios")
_CHANGES = "-- changes\n"
# What ends a statement is at the end of a line that is not indented: the bodies of functions are.
_END = ";\n"


@dataclass(frozen=True)
class Scenario:
    """Statements that are run in a schema of the scenario's name, each in a transaction of its own.

    >>> Scenario.read("keys").changes[0][:21]
    'insert into composite'
    """

    name: str
    setup: tuple[str, ...]
    changes: tuple[str, ...]

    @classmethod
    def read(cls, name: str) -> Self:
        setup, changes = (FOLDER / f"{name}.sql").read_text().split(_CHANGES)
        return cls(name, _statements(setup), _statements(changes))

    def prepare(self, connection: psycopg.Connection) -> None:
        """Make the schema anew and run what comes before the capture."""
        schema = sql.Identifier(self.name)
        connection.execute(sql.SQL("drop schema if exists {} cascade").format(schema))
        connection.execute(sql.SQL("create schema {}").format(schema))
        self._run(connection, self.setup)

    def change(self, connection: psycopg.Connection) -> None:
        """Run what is captured."""
        self._run(connection, self.changes)

    def _run(self, connection: psycopg.Connection, statements: tuple[str, ...]) -> None:
        connection.execute(sql.SQL("set search_path to {}, public").format(sql.Identifier(self.name)))
        for statement in statements:
            connection.execute(statement)


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(path.stem for path in FOLDER.glob("*.sql"))


def _statements(text: str) -> tuple[str, ...]:
    lines = [line for line in text.splitlines(keepends=True) if not line.startswith("--")]
    parts: list[str] = [""]
    for line in lines:
        parts[-1] += line
        if line.endswith(_END) and not line.startswith(" "):
            parts.append("")
    return tuple(part.strip().removesuffix(";") for part in parts if part.strip())
