"""Enumerations of a copy: made with the source's labels, and given those that it adds."""

from psycopg.sql import SQL, Composable, Identifier, Literal

from penstock.capture.tables import Connection, quoted
from penstock.errors import ReplicaError
from penstock.replica.declared_types import EnumType

_LABELS = """
SELECT t.typtype::text, array(SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid)
FROM pg_type t WHERE t.oid = to_regtype(%s)
"""


class EnumTypes:
    """Makes enumerations, outside of transactions: a new label can't be used in the one that adds it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def follow(self, schema: str, enum: EnumType) -> None:
        """Make an enumeration, or add the labels that it lacks, where the source has them."""
        name = f"{quoted(schema)}.{quoted(enum.name)}"
        row = self._connection.execute(_LABELS, [name]).fetchone()
        if row is None:
            labels = SQL(", ").join(Literal(each) for each in enum.labels)
            made = SQL("CREATE TYPE {}.{} AS ENUM ({})").format(
                Identifier(schema), Identifier(enum.name), labels
            )
            self._connection.execute(made)
            return
        kind, known = row
        if kind != "e":
            raise ReplicaError(f"there is a type {name} already, which is no enum", hint="give --schema")
        for place, label in enumerate(enum.labels):
            if label not in known:
                self._add(schema, enum, place, known)

    def _add(self, schema: str, enum: EnumType, place: int, known: list[str]) -> None:
        """Add a label behind the one before it, which is there by now, or as the first."""
        before = next((each for each in enum.labels[1:] if each in known), None)
        where: Composable = SQL("")
        if place > 0:
            where = SQL("AFTER {}").format(Literal(enum.labels[place - 1]))
        elif before is not None:
            where = SQL("BEFORE {}").format(Literal(before))
        self._connection.execute(
            SQL("ALTER TYPE {}.{} ADD VALUE IF NOT EXISTS {} {}").format(
                Identifier(schema), Identifier(enum.name), Literal(enum.labels[place]), where
            )
        )
