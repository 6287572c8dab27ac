"""The tables of results, as they stand in the database."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

import psycopg
from psycopg.errors import UndefinedTable

from penstock.apps.pageviews.truth import Place, Ranked

_MINUTES = "SELECT url, start, views, visitors, kind FROM pageviews_minutes"
_TOP = 'SELECT "end", url, rank, views FROM pageviews_top'


@dataclass(frozen=True)
class Tables:
    """What each page and minute has, how many minutes were corrected, and the ranking of each window."""

    minutes: dict[Place, tuple[int, int]] = field(default_factory=dict)
    corrected: int = 0
    top: dict[datetime, Ranked] = field(default_factory=dict)

    @classmethod
    def read(cls, dsn: str) -> Self:
        """Read them; they are empty until the flows have made them."""
        try:
            with psycopg.connect(dsn) as connection:
                rows = connection.execute(_MINUTES).fetchall()
                ranks = connection.execute(_TOP).fetchall()
        except UndefinedTable:
            return cls()
        top: dict[datetime, Ranked] = {}
        for end, url, rank, views in ranks:
            top.setdefault(end, {})[url] = rank, views
        minutes = {(url, start): (views, visitors) for url, start, views, visitors, _ in rows}
        return cls(minutes, sum(kind == "corrected" for *_, kind in rows), top)
