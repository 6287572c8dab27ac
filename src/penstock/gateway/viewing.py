"""GET /views/{view}: rows by key, in pages, as of a time; WS /views/{view}: rows again when they change."""

import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlencode

import anyio
import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from penstock.gateway.database import Databases, Row
from penstock.gateway.refusal import JsonResponse, Refusal
from penstock.gateway.session import Session
from penstock.gateway.start import moment, refuse_unknown, whole, wrong
from penstock.gateway.view import View
from penstock.gateway.view_query import ViewQuery

USUAL, MOST = 100, 1_000  # rows
_ROWS = ("after", "at", "limit", "order")  # the words of a query for rows
_EVERY = 0.4  # seconds between two looks at what is followed


class Viewing:
    """Answers from the tables of views, and follows them."""

    def __init__(
        self, views: Mapping[str, View], databases: Databases, streams: int, stopping: threading.Event
    ) -> None:
        self._views, self._databases, self._stopping = views, databases, stopping
        self._streams = anyio.CapacityLimiter(streams)

    async def row(self, request: Request) -> Response:
        """Answer with the row of a key."""
        view = self._view(request.path_params["view"])
        refuse_unknown(request.query_params, "at")
        query = ViewQuery(view, key=_key(request), at=_at(request.query_params))
        found = await self._databases.rows(query)
        if not found:
            raise Refusal(404, "gateway.no-row", f"view {view.name!r} has no row of this key")
        return JsonResponse(found[0][0])

    async def rows(self, request: Request) -> Response:
        """Answer with the first rows, and where to go on."""
        refuse_unknown(request.query_params, *_ROWS)
        query = _query(self._view(request.path_params["view"]), request.query_params)
        return JsonResponse(_page(query, await self._databases.rows(query)))

    async def follow(self, socket: WebSocket) -> None:
        """Send rows, and again whenever they have changed."""
        view, asked = self._view(socket.path_params["view"]), socket.query_params
        refuse_unknown(asked, "key", *_ROWS)
        key = tuple(asked.getlist("key")) or None
        query = ViewQuery(view, key=key) if key else _query(view, asked)
        if query.at is not None:
            raise wrong("at= is a time that does not change", "ask for it with GET")
        try:
            self._streams.acquire_on_behalf_of_nowait(socket)
        except anyio.WouldBlock:
            raise Refusal.busy("so many clients follow views already") from None
        try:
            await self._run(query, Session(socket, self._stopping))
        finally:
            self._streams.release_on_behalf_of(socket)

    async def _run(self, query: ViewQuery, session: Session) -> None:
        first = await self._databases.rows(query)
        await session.open()
        await session.run(lambda: self._push(query, session, first), _heed)

    async def _push(self, query: ViewQuery, session: Session, seen: list[Row]) -> None:
        """A client that is slow misses versions in between, and always gets the last one."""
        await session.send(_pushed(query, seen))
        while True:
            await anyio.sleep(_EVERY)
            found = await self._databases.rows(query)
            if found != seen:
                seen = found
                await session.send(_pushed(query, seen))

    def _view(self, name: str) -> View:
        if name not in self._views:
            raise Refusal(
                404,
                "gateway.unknown-view",
                f"there is no view {name[:100]!r} here",
                hint="/openapi.json lists what is served",
            )
        return self._views[name]


def _query(view: View, asked: QueryParams) -> ViewQuery:
    order = tuple(each for each in asked.get("order", "").split(",") if each)
    limit = whole("limit", asked.get("limit", str(USUAL)), MOST)
    return ViewQuery(view, None, tuple(asked.getlist("after")) or None, limit, order, _at(asked))


def _at(asked: Mapping[str, str]) -> Any:
    return moment("at", asked["at"]) if "at" in asked else None


def _key(request: Request) -> tuple[str, ...]:
    """The parts of a key in the path; a slash within one is written as %2F."""
    segments = request.scope["raw_path"].partition(b"?")[0].decode("ascii").split("/")
    try:
        return tuple(unquote(each, errors="strict") for each in segments[3:])  # after /views/{view}/
    except UnicodeDecodeError:
        raise Refusal(400, "gateway.path", "the path is not UTF-8") from None


def _page(query: ViewQuery, rows: list[Row]) -> dict[str, Any]:
    more = len(rows) == query.limit and rows and not query.order
    following = urlencode([("after", part) for part in rows[-1][1]]) if more else None
    return {"rows": [msgspec.Raw(text) for text, _ in rows], "next": following}


def _pushed(query: ViewQuery, rows: list[Row]) -> dict[str, Any]:
    if query.key is None:
        return {"rows": [msgspec.Raw(text) for text, _ in rows]}
    return {"row": msgspec.Raw(rows[0][0]) if rows else None}


def _heed(said: Any) -> None:
    raise Refusal(
        400, "gateway.message", f"the message is {str(said)[:100]!r}", hint="there is nothing to say"
    )
