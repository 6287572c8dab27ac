"""The registry over HTTP, by the paths and the error codes of Confluent's."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.errors import (
    IncompatibleSchemaError,
    InvalidSchemaError,
    PenstockError,
    TryAgainError,
    UnknownSchemaError,
    UnknownSubjectError,
)
from penstock.registry.asked import INVALID_SCHEMA, Asked, Refusal
from penstock.registry.records import SchemaRecord
from penstock.registry.registry import Registry
from penstock.schemas.compatibility import SchemaKind

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_LARGEST_BODY = 4 * 2**20
Answer = Callable[[Asked], Any]
_BY_ID = ("schema", "schemaType", "references")
_PLACE = ("subject", "version")


def _shown(record: SchemaRecord, *names: str) -> dict[str, Any]:
    whole = {
        "subject": record.subject,
        "version": record.version,
        "id": record.id,
        "schema": record.text,
        "schemaType": None if record.kind is SchemaKind.AVRO else record.kind.value,
        "references": [vars(each) for each in record.references] or None,
    }
    return {
        name: value for name, value in whole.items() if value is not None and (not names or name in names)
    }


def _register(asked: Asked) -> Any:
    return _shown(asked.registry.register(asked.path("subject"), *asked.schema()))


def _lookup(asked: Asked) -> Any:
    found = asked.registry.lookup(asked.path("subject"), *asked.schema(), deleted=asked.flag("deleted"))
    return _shown(found)


def _check(asked: Asked, version: int | None) -> Any:
    try:
        problems = asked.registry.check(asked.path("subject"), *asked.schema(), version)
    except UnknownSubjectError as error:
        if error.code == 40401:
            return {"is_compatible": True}
        raise
    answer: dict[str, Any] = {"is_compatible": not problems}
    return answer | ({"messages": [str(each) for each in problems]} if asked.flag("verbose") else {})


def _check_version(asked: Asked) -> Any:
    wanted = asked.version()
    if wanted is None:
        try:
            wanted = asked.registry.version(asked.path("subject")).version
        except UnknownSubjectError:
            return {"is_compatible": True}
    return _check(asked, wanted)


def _version(asked: Asked) -> Any:
    return _shown(
        asked.registry.version(asked.path("subject"), asked.version(), deleted=asked.flag("deleted"))
    )


def _delete_version(asked: Asked) -> Any:
    subject, wanted, permanent = asked.path("subject"), asked.version(), asked.flag("permanent")
    version = wanted or asked.registry.version(subject, deleted=permanent).version
    return asked.registry.delete(subject, version, permanent=permanent)[0]


def _uses(asked: Asked) -> list[SchemaRecord]:
    return asked.registry.uses_of(int(asked.path("id")))


def _set_mode(asked: Asked, subject: str | None) -> Any:
    mode = asked.mode()
    asked.registry.set_mode(mode, subject)
    return {"compatibility": mode.value}


def _mode_of(asked: Asked) -> Any:
    registry, subject = asked.registry, asked.path("subject")
    mode = registry.mode(subject) if asked.flag("defaultToGlobal") else registry.own_mode(subject)
    return {"compatibilityLevel": mode.value}


def _unset_mode(asked: Asked) -> Any:
    mode = asked.registry.own_mode(asked.path("subject"))
    asked.registry.set_mode(None, asked.path("subject"))
    return {"compatibilityLevel": mode.value}


_ROUTES: list[tuple[str, str, Answer]] = [
    ("GET", "/", lambda _: {}),
    ("GET", "/schemas/types", lambda _: [kind.value for kind in SchemaKind]),
    (
        "GET",
        "/schemas/ids/{id:int}",
        lambda asked: _shown(asked.registry.schema(int(asked.path("id"))), *_BY_ID),
    ),
    (
        "GET",
        "/schemas/ids/{id:int}/schema",
        lambda asked: _Raw(asked.registry.schema(int(asked.path("id"))).text),
    ),
    ("GET", "/schemas/ids/{id:int}/subjects", lambda asked: sorted({each.subject for each in _uses(asked)})),
    ("GET", "/schemas/ids/{id:int}/versions", lambda asked: [_shown(each, *_PLACE) for each in _uses(asked)]),
    ("GET", "/subjects", lambda asked: asked.registry.subjects(deleted=asked.flag("deleted"))),
    ("POST", "/subjects/{subject}", _lookup),
    (
        "DELETE",
        "/subjects/{subject}",
        lambda asked: asked.registry.delete(asked.path("subject"), permanent=asked.flag("permanent")),
    ),
    (
        "GET",
        "/subjects/{subject}/versions",
        lambda asked: [
            each.version
            for each in asked.registry.versions(asked.path("subject"), deleted=asked.flag("deleted"))
        ],
    ),
    ("POST", "/subjects/{subject}/versions", _register),
    ("GET", "/subjects/{subject}/versions/{version}", _version),
    ("GET", "/subjects/{subject}/versions/{version}/schema", lambda asked: _Raw(_version(asked)["schema"])),
    ("DELETE", "/subjects/{subject}/versions/{version}", _delete_version),
    ("POST", "/compatibility/subjects/{subject}/versions", lambda asked: _check(asked, None)),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}", _check_version),
    ("GET", "/config", lambda asked: {"compatibilityLevel": asked.registry.mode().value}),
    ("PUT", "/config", lambda asked: _set_mode(asked, None)),
    ("GET", "/config/{subject}", _mode_of),
    ("PUT", "/config/{subject}", lambda asked: _set_mode(asked, asked.path("subject"))),
    ("DELETE", "/config/{subject}", _unset_mode),
    ("GET", "/mode", lambda _: {"mode": "READWRITE"}),
    ("GET", "/mode/{subject}", lambda _: {"mode": "READWRITE"}),
    ("GET", "/contexts", lambda _: ["."]),
]


class _Raw(str):
    """A schema's text that is sent as it is."""


def application(registry: Registry) -> Starlette:
    """Return the registry's HTTP application."""
    routes = [Route(path, _endpoint(registry, answer), methods=[method]) for method, path, answer in _ROUTES]
    return Starlette(
        routes=routes, exception_handlers=dict.fromkeys((Refusal, HTTPException, PenstockError), _failed)
    )


def serve(registry: Registry, *, host: str = "127.0.0.1", port: int = 8081) -> None:
    """Serve the registry until the process is told to stop."""
    uvicorn.run(application(registry), host=host, port=port, log_level="warning")


def _endpoint(registry: Registry, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        asked = Asked(request, registry, await _body(request))
        found = await run_in_threadpool(answer, asked)
        if isinstance(found, _Raw):
            return Response(str(found), media_type=CONTENT_TYPE)
        return JSONResponse(found, media_type=CONTENT_TYPE)

    return endpoint


async def _body(request: Request) -> dict[str, Any]:
    if request.method not in ("POST", "PUT"):
        return {}
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _LARGEST_BODY:
            raise Refusal(413, 413, f"the body is larger than {_LARGEST_BODY} bytes")
    try:
        found = json.loads(data)
    except ValueError as error:
        raise Refusal(400, 400, f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refusal(422, 422, "the body is not a JSON object")
    return found


async def _failed(_: Request, error: Exception) -> Response:
    match error:
        case Refusal(status=status, code=code):
            return _error(status, code, str(error))
        case HTTPException(status_code=status, detail=detail):
            return _error(status, status, detail)
        case UnknownSubjectError(code=code):
            return _error(code // 100, code, str(error))
        case UnknownSchemaError():
            return _error(404, 40403, str(error))
        case IncompatibleSchemaError():
            return _error(409, 409, str(error))
        case InvalidSchemaError():
            return _error(422, INVALID_SCHEMA, str(error))
        case TryAgainError():
            return _error(500, 50003, str(error))
    return _error(500, 50001, str(error))


def _error(status: int, code: int, message: str) -> Response:
    return JSONResponse({"error_code": code, "message": message}, status, media_type=CONTENT_TYPE)
