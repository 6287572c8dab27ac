"""Compares the copies of a table with their source, each by its own system's reader."""

from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import redis
from deltalake import DeltaTable

from penstock.settings import Settings, reveal
from penstock.targets import SearchIndex
from penstock.targets.redis import current_prefix

Row = tuple[int, str | None, Decimal | None, str | None]
_MANY = 10_000_000


def differences(settings: Settings, folder: Path, *, replica: bool) -> list[str]:
    """What is wrong with the copies: nothing, if the list is empty."""
    source = _keyed(table_rows(settings, "orders"))
    copies: dict[str, Callable[[], Iterator[Row]]] = {
        "table": lambda: table_rows(settings, "orders_copy"),
        "cache": lambda: cache_rows(settings),
        "index": lambda: index_rows(folder),
        "lake": lambda: lake_rows(folder),
    }
    if replica:
        copies["replica"] = lambda: table_rows(settings, "replica.orders")
    return [line for name, read in copies.items() for line in _compared(name, source, list(read()))]


def _compared(name: str, source: dict[int, Row], found: list[Row]) -> list[str]:
    keyed = _keyed(found)
    doubled = len(found) - len(keyed)
    missing, more = source.keys() - keyed.keys(), keyed.keys() - source.keys()
    other = [id for id in source.keys() & keyed.keys() if source[id] != keyed[id]]
    if not (doubled or missing or more or other):
        return []
    shown = [f"{source[id]} is {keyed[id]}"[:300] for id in other[:2]]
    return [
        f"{name}: {len(source)} rows in the source; {len(missing)} missing {sorted(missing)[:3]}, "
        f"{len(more)} too many {sorted(more)[:3]}, {len(other)} different {shown}, {doubled} doubled"
    ]


def _keyed(rows: Any) -> dict[int, Row]:
    return {row[0]: row for row in rows}


def table_rows(settings: Settings, table: str) -> Iterator[Row]:
    with psycopg.connect(reveal(settings.dsn())) as connection:
        yield from connection.execute(f"select id, name, price, note from {table}")


def cache_rows(settings: Settings) -> Iterator[Row]:
    with closing(redis.Redis.from_url(reveal(settings.url("redis")))) as client:
        prefix = current_prefix(client, "order")
        for key in client.scan_iter(f"{prefix}:*", count=5000):
            held = {name.decode(): value.decode() for name, value in client.hgetall(key).items()}
            price = held.get("price")
            yield int(held["id"]), held.get("name"), Decimal(price) if price else None, held.get("note")


def index_rows(folder: Path) -> Iterator[Row]:
    for row in SearchIndex(folder / "index", key="id", text="name").search("*", limit=_MANY):
        price = row.get("price")
        yield row["id"], row.get("name"), None if price is None else Decimal(price), row.get("note")


def lake_rows(folder: Path) -> Iterator[Row]:
    orders = DeltaTable(folder / "lake").to_pyarrow_dataset()
    with closing(duckdb.connect()) as connection:
        connection.register("orders", orders)
        yield from connection.execute("select id, name, price, note from orders").fetchall()
