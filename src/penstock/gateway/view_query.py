"""Queries of a view as SQL: names are those of the catalogue, values are never part of the text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.sql import SQL, Composable, Composed, Identifier, Literal

from penstock.gateway.refusal import Refusal
from penstock.gateway.view import View
from penstock.targets import PostgresTable

Columns = Mapping[str, str]  # names and types, as PostgreSQL spells these
_TIMES = ("timestamp with time zone", "timestamp without time zone", "date")
# Numbers and bytes as events have them; a JSON number is a float to most of its readers.
_SHOWN = {
    "numeric": SQL("{0}::text AS {0}"),
    "bytea": SQL("translate(encode({0}, 'base64'), E'\\n', '') AS {0}"),
}


@dataclass(frozen=True)
class ViewQuery:
    """Rows of a view: of one key, or the first ones in an order, after a key; `at` is a time to ask for."""

    view: View
    key: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None
    limit: int = 1
    order: tuple[str, ...] = ()
    at: datetime | None = None

    def __post_init__(self) -> None:
        for given in (self.key, self.after):
            if given is not None and len(given) != len(self.view.keys):
                expected = ", ".join(self.view.keys)
                message = f"the key has {len(given)} values, expected {len(self.view.keys)}: {expected}"
                raise Refusal(400, "gateway.key-parts", message)
        if self.after is not None and self.order:
            message = "after= goes on by the key, and not in another order"
            raise Refusal(400, "gateway.query", message, hint="ask for more rows with limit=")
        if self.at is not None and not self.view.has_history:
            raise Refusal(
                409,
                "gateway.no-history",
                f"view {self.view.name!r} has no history: its table keeps the last row of each key",
                hint="let a flow append the versions to a table, and declare View(table, history=…)",
            )

    @property
    def table(self) -> PostgresTable:
        """The table that is asked."""
        return (self.view.versions if self.at is not None else None) or self.view.table

    @property
    def values(self) -> list[object]:
        """What the statement is given."""
        times = [] if self.at is None else [self.at]
        return [*(self.key or ()), *(self.after or ()), *times]

    def statement(self, columns: Columns) -> Composed:
        """Return the statement: each row as JSON, and the text of its key."""
        shown = SQL(", ").join(_shown(name, kind) for name, kind in columns.items())
        keys = SQL(", ").join(SQL("{}::text").format(Identifier("r", each)) for each in self.view.keys)
        return SQL(
            "SELECT (SELECT row_to_json(s) FROM (SELECT {shown}) s)::text, {keys} "
            "FROM ({rows}) r ORDER BY {order} LIMIT {limit}"
        ).format(
            shown=shown,
            keys=keys,
            rows=self._rows(columns),
            order=SQL(", ").join(self._ordered(columns)),
            limit=Literal(self.limit),
        )

    def _rows(self, columns: Columns) -> Composed:
        """The rows that count: of versions, the last one of each key."""
        conditions = SQL(" AND ").join([SQL("true"), *self._conditions(columns)])
        if self.table is not self.view.versions:
            return SQL("SELECT * FROM {} WHERE {}").format(self.table.identifier, conditions)
        keys, newest = _names(self.view.keys), SQL(", ").join(self._newest(columns))
        return SQL("SELECT DISTINCT ON ({keys}) * FROM {} WHERE {} ORDER BY {keys}, {}").format(
            self.table.identifier, conditions, newest, keys=keys
        )

    def _conditions(self, columns: Columns) -> list[Composable]:
        keys, found = _names(self.view.keys), list[Composable]()
        places = SQL(", ").join(SQL("%s") for _ in self.view.keys)
        if self.key is not None:
            found.append(SQL("({}) = ({})").format(keys, places))
        if self.after is not None:
            found.append(SQL("({}) > ({})").format(keys, places))
        if self.at is not None:
            found.append(SQL("{} <= %s").format(Identifier(self._time(columns))))
        return found

    def _newest(self, columns: Columns) -> list[Composable]:
        ties = self.view.order or tuple(each for each in ("id",) if each in columns)
        return [SQL("{} DESC NULLS LAST").format(Identifier(each)) for each in (self._time(columns), *ties)]

    def _time(self, columns: Columns) -> str:
        if columns.get(self.view.time) in _TIMES:
            return self.view.time
        raise Refusal(
            409,
            "gateway.no-history",
            f"table {self.table.name!r} has no time in a column {self.view.time!r}",
            hint='name it: View(table, time="…")',
        )

    def _ordered(self, columns: Columns) -> list[Composable]:
        return [*(_direction(each, columns) for each in self.order), *map(_column, self.view.keys)]


def _shown(name: str, kind: str) -> Composable:
    known = _SHOWN.get(kind.partition("(")[0])
    return known.format(Identifier(name)) if known else Identifier("r", name)


def _direction(asked: str, columns: Columns) -> Composable:
    name = asked.removeprefix("-")
    if name not in columns:
        message = f"order has {name[:50]!r}, which is no column"
        raise Refusal(400, "gateway.query", message, hint=f"there are {', '.join(columns)}"[:500])
    down = SQL("{} DESC NULLS LAST" if asked.startswith("-") else "{} NULLS LAST")
    return down.format(Identifier("r", name))


def _column(name: str) -> Composable:
    return Identifier("r", name)


def _names(names: Sequence[str]) -> Composed:
    return SQL(", ").join(map(Identifier, names))
