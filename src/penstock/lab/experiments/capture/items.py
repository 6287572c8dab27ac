"""The table that everything begins with: a shop's items, each with a price and a version."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import sql

from penstock.settings import Settings

COUNT = 40
_WORDS = (("oak", "steel", "linen", "glass", "cork"), ("desk", "lamp", "chair", "stool", "vase", "clock"))
_MAKE = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.items (
    id integer PRIMARY KEY,
    name text NOT NULL,
    price numeric(12, 2) NOT NULL,
    version bigint NOT NULL DEFAULT 1,
    changed timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""
_CHANGE = """
UPDATE {schema}.items SET price = price + 0.01, version = version + 1, changed = clock_timestamp()
WHERE id = %s RETURNING price, version
"""
_READ = "SELECT id, version, extract(epoch FROM clock_timestamp() - changed) FROM {schema}.items ORDER BY id"


@dataclass(frozen=True)
class Item:
    """A row as it is after a change."""

    id: int
    name: str
    price: Decimal
    version: int


class Items:
    """A connection to the table, for one thread."""

    def __init__(self, settings: Settings, schema: str) -> None:
        self.schema = schema
        self._connection = psycopg.connect(settings.dsn().value, autocommit=True)

    @property
    def table(self) -> str:
        return f"{self.schema}.items"

    def create(self) -> None:
        """Make the table, with all rows in their first version."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute(self._sql(_MAKE))
            rows = [(number, name_of(number), Decimal(5 + number)) for number in range(COUNT)]
            insert = self._sql("INSERT INTO {schema}.items (id, name, price) VALUES (%s, %s, %s)")
            cursor.executemany(insert, rows)

    def change(self, number: int) -> Item:
        """Raise the price of an item; it is committed when this returns."""
        price, version = self._connection.execute(self._sql(_CHANGE), [number]).fetchone() or (Decimal(0), 0)
        return Item(number, name_of(number), price, version)

    def versions(self) -> dict[int, tuple[int, float]]:
        """Return each row's version, and how many seconds ago it was changed."""
        rows = self._connection.execute(self._sql(_READ)).fetchall()
        return {number: (version, float(age)) for number, version, age in rows}

    def close(self) -> None:
        self._connection.close()

    def _sql(self, text: Any) -> sql.Composed:
        return sql.SQL(text).format(schema=sql.Identifier(self.schema))


def name_of(number: int) -> str:
    """Return the name of an item.

    >>> name_of(7)
    'linen lamp 7'
    """
    materials, things = _WORDS
    return f"{materials[number % len(materials)]} {things[number % len(things)]} {number}"
