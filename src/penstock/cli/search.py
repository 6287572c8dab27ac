"""penstock search: rows of a search index that match a query."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.output import Json, show


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("search")(search)


def search(
    path: Annotated[Path, typer.Argument(help="The index's folder.")],
    query: Annotated[
        str, typer.Argument(help="Words, phrases in quotes, column:value, AND, OR, NOT; * is all.")
    ],
    limit: Annotated[int, typer.Option("-n", "--limit", help="How many rows.")] = 10,
    as_json: Json = False,
) -> None:
    """Search an index that a flow writes; the rows that match best come first.

    Example: penstock search articles 'quick fox AND stars:[4 TO 5]'
    """
    from penstock.targets.search import SearchIndex

    rows = SearchIndex(path).search(query, limit)
    show(rows, list(rows[0]) if rows else (), as_json=as_json, empty="no row matches")
