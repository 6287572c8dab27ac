"""How answers are shown: a table for people, JSON for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.documents import JsonObject

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
# Words like :key: in somebody's names are no pictures; what is printed of them is escaped.
console = Console(emoji=False)
errors = Console(emoji=False, stderr=True)


def show(rows: Iterable[Any], columns: Sequence[str], *, as_json: bool, empty: str) -> None:
    """Show dataclasses or dicts, a row each; `empty` is said to people when there are none."""
    found = [asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row) for row in rows]
    if as_json:
        typer.echo(json.dumps(found, default=plain, indent=2))
    elif not found:
        console.print(empty, markup=False)
    else:
        console.print(_table(found, columns))


def _table(rows: list[JsonObject], columns: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        numbers = all(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column))) for column in columns))
    return table


def _cell(value: object) -> str:
    if value is None or value == {}:
        return "–"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, dict):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def plain(value: object) -> str:
    """Return a value that JSON does not know as one that it does."""
    if isinstance(value, datetime):
        return value.isoformat()
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def milliseconds(value: float | None) -> str:
    """Spell a latency: in milliseconds, and from ten seconds on in seconds.

    >>> milliseconds(17.4), milliseconds(1234.0), milliseconds(12_345.0)
    ('17 ms', '1,234 ms', '12 s')
    """
    if value is None:
        return "–"
    return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.0f} s"


def rows(found: Iterable[tuple[str, str, str]]) -> Table:
    """A table of figures: the name of each, its value, and what it means."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in found:
        table.add_row(*row)
    return table
