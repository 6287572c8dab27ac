"""The copies of the order view, each read by its own system's reader, beside SQL over the source."""

from collections.abc import Callable, Container, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import sql

from penstock.apps.demo.comparison import Comparison
from penstock.apps.shop.pipeline import CACHE, COLUMNS, INDEX, LAKE, TABLE
from penstock.settings import Settings

Row = tuple[Any, ...]
_MANY = 10_000_000
_SOURCE = """
SELECT l.id, o.id, o.customer, o.status, o.placed, p.id, p.name, l.quantity, p.price, l.quantity * p.price
FROM order_lines l JOIN orders o ON o.id = l.order_id JOIN products p ON p.id = l.product_id
"""
_NUMBERS, _MONEY = ("line_id", "order_id", "product_id", "quantity"), ("price", "amount")


def source_rows(settings: Settings) -> dict[int, Row]:
    """What the view has to hold, by its lines: a query over the shop's own tables."""
    with psycopg.connect(settings.dsn().value) as connection:
        return {row[0]: row for row in connection.execute(_SOURCE)}


def compared(settings: Settings, flows: Container[str]) -> dict[str, Comparison]:
    """Each copy that a flow has made beside the source, row by row."""
    source = source_rows(settings)
    return {
        name: Comparison.of(source, ((row[0], row) for row in read(settings)))
        for name, read in READERS.items()
        if name in flows
    }


def _table(settings: Settings) -> Iterator[Row]:
    with psycopg.connect(settings.dsn().value) as connection:
        columns = sql.SQL(", ").join(map(sql.Identifier, COLUMNS))
        query = sql.SQL("SELECT {} FROM {}").format(columns, sql.Identifier(TABLE.name))
        yield from connection.execute(query)


def _index(settings: Settings) -> Iterator[Row]:
    index = replace(INDEX, path=settings.data / INDEX.path)
    for row in index.search("*", limit=_MANY):
        yield tuple(row[name] for name in COLUMNS)


def _lake(settings: Settings) -> Iterator[Row]:
    from deltalake import DeltaTable

    for row in DeltaTable(settings.data / LAKE.path).to_pyarrow_table().to_pylist():
        yield tuple(row[name] for name in COLUMNS)


def _cache(settings: Settings) -> Iterator[Row]:
    import redis

    from penstock.targets.redis import current_prefix

    with closing(redis.Redis.from_url(settings.url("redis").value, decode_responses=True)) as client:
        for key in client.scan_iter(f"{current_prefix(client, CACHE.prefix)}:*", count=5_000):
            held = client.hgetall(key)
            yield tuple(_value(name, str(held[name])) for name in COLUMNS)


def _value(name: str, text: str) -> Any:
    """What Redis holds as a text."""
    if name == "placed":
        return datetime.fromisoformat(text)
    return int(text) if name in _NUMBERS else Decimal(text) if name in _MONEY else text


READERS: dict[str, Callable[[Settings], Iterator[Row]]] = {
    "table": _table,
    "index": _index,
    "cache": _cache,
    "lake": _lake,
}  # by the flow that writes it
