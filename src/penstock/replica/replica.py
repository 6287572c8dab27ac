"""Replicas as values: which capture's tables are kept in which database."""

import re
from dataclasses import dataclass

from penstock.capture import Capture
from penstock.errors import ReplicaError

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Replica:
    """The tables of a capture in another PostgreSQL database, which follow every change.

    >>> Replica("copy", "shop", schema="mirror").table("public.orders")
    ('mirror', 'orders')

    `connection` is one of the settings', the local database without it. All tables are made in `schema`, or
    in schemas of the source's names without it.
    """

    name: str
    capture: str
    connection: str | None = None
    schema: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ReplicaError(
                f"{self.name!r} is not a replica's name",
                hint="use up to 40 small letters, digits and _, a letter first",
            )
        if self.schema == "penstock":
            raise ReplicaError("the schema 'penstock' is where positions are kept", hint="use another one")

    def table(self, path: str) -> tuple[str, str]:
        """Return the schema and the name that a table of the source has in the copy."""
        schema, _, name = path.partition(".")
        return self.schema or schema, name

    def check(self, capture: Capture) -> None:
        """Refuse a capture whose records do not hold all that a copy needs."""
        for option, seen, wanted in (
            ("format", capture.format, "debezium-json"),
            ("decimals", capture.decimals, "string"),
            ("intervals", capture.intervals, "string"),
        ):
            if seen != wanted:
                raise ReplicaError(
                    f"capture {capture.name!r} has {option} {seen!r}, and a replica reads {wanted!r}",
                    hint="add a second capture of the same tables, under another name",
                )
        if not capture.tables:
            raise ReplicaError(f"capture {capture.name!r} has no tables", hint="its events have no rows")
        tables = [self.table(path) for path in capture.tables]
        doubled = next((each for each in tables if tables.count(each) > 1), None)
        if doubled is not None:
            raise ReplicaError(
                f"two tables of the capture would be {'.'.join(doubled)!r} in the copy",
                hint="leave --schema out, so that each keeps its own",
            )
