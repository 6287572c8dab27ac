"""Tables that flows write: their rows by key, the first ones, and as they were at a time."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import QueryParams

from penstock.console.masking import Masks
from penstock.documents import JsonObject, presentable
from penstock.gateway.database import Databases
from penstock.gateway.refusal import Refusal
from penstock.gateway.start import moment, whole
from penstock.gateway.view import View
from penstock.gateway.view_query import ViewQuery
from penstock.settings import Settings

USUAL, MOST = 50, 500  # rows


class ViewReader:
    """Asks the tables of views, through the gateway's queries: values are never part of their text."""

    def __init__(self, settings: Settings, views: Mapping[str, View], masks: Masks) -> None:
        self._views, self._masks = views, masks
        self._databases = Databases(settings)

    def described(self) -> list[JsonObject]:
        """Return the views that modules declare."""
        return [
            {
                "name": name,
                "table": view.table.name,
                "keys": list(view.keys),
                "has_history": view.has_history,
                "write": view.table.write,
                "masked": self._hides_key(name),
            }
            for name, view in sorted(self._views.items())
        ]

    async def rows(self, name: str, asked: QueryParams) -> JsonObject:
        """Return the rows of a key, or the first ones; `at` asks for a time."""
        if name not in self._views:
            raise Refusal(404, "console.unknown-view", f"there is no view {name[:100]!r}")
        view, is_masked = self._views[name], self._hides_key(name)
        self._refuse_masked(name, asked, is_masked=is_masked)
        query = ViewQuery(
            view,
            key=tuple(asked.getlist("key")) or None,
            after=tuple(asked.getlist("after")) or None,
            limit=max(1, whole("limit", asked.get("limit", str(USUAL)), MOST)),
            order=_order(asked),
            at=moment("at", asked["at"]) if asked.get("at") else None,
        )
        found = await self._databases.rows(query)
        rows = [self._masks.hidden(name, presentable(json.loads(text))) for text, _ in found]
        following = None if is_masked else _following(query, found)
        return {"rows": rows, "keys": list(view.keys), "next": following}

    def _hides_key(self, name: str) -> bool:
        return any(self._masks.hides_column(name, each) for each in self._views[name].keys)

    def _refuse_masked(self, name: str, asked: QueryParams, *, is_masked: bool) -> None:
        """A row that is found, or its place among others, would confirm a guess of what is hidden."""
        if is_masked and ("key" in asked or "after" in asked):
            raise _masked("keys of this view are masked, and can't be looked for")
        for each in _order(asked):
            if self._masks.hides_column(name, each.removeprefix("-")):
                raise _masked(f"column {each.removeprefix('-')[:50]!r} is masked, and gives no order")

    async def close(self) -> None:
        await self._databases.close()


def _order(asked: QueryParams) -> tuple[str, ...]:
    return tuple(each for each in asked.get("order", "").split(",") if each)


def _masked(message: str) -> Refusal:
    return Refusal(403, "console.masked", message)


def _following(query: ViewQuery, found: list[Any]) -> list[str] | None:
    is_more = len(found) == query.limit and query.key is None and not query.order
    return list(found[-1][1]) if is_more and found else None
