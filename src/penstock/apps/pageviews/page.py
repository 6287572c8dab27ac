"""The live page: `penstock gateway -m penstock.apps.pageviews.page` serves it at /pageviews."""

from pathlib import Path
from typing import Any

import psycopg
from psycopg.errors import UndefinedTable
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from penstock.apps.pageviews.pipeline import pageviews
from penstock.errors import ServiceError
from penstock.settings import Settings

__all__ = ["gateway_routes", "pageviews"]
PAGE = Path(__file__).with_name("page.html")
_CONNECT_S = 5
_MINUTES = """
SELECT start, sum(views)::bigint FROM pageviews_minutes
WHERE start > now() - interval '20 minutes' GROUP BY start ORDER BY start
"""


def gateway_routes(settings: Settings) -> list[Route]:
    """Return the page, and the minutes before it was opened; all else is pushed to it by the gateway."""

    async def page(_: Request) -> Response:
        return FileResponse(PAGE)

    async def minutes(_: Request) -> Response:
        return JSONResponse(await run_in_threadpool(past_minutes, settings.dsn().value))

    return [Route("/pageviews", page), Route("/pageviews/minutes", minutes)]


def past_minutes(dsn: str) -> list[dict[str, Any]]:
    """The views of all pages together, in the last minutes that are over."""
    try:
        with psycopg.connect(dsn, connect_timeout=_CONNECT_S) as connection:
            rows = connection.execute(_MINUTES).fetchall()
    except UndefinedTable:  # the flow has not made it yet
        return []
    except psycopg.OperationalError:
        raise ServiceError("the database did not answer", hint="is it up? try again") from None
    return [{"start": start.isoformat(), "views": views} for start, views in rows]
