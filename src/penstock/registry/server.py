"""The registry over HTTP, by the paths and the error codes of Confluent's."""

import json
from collections.abc import Awaitable, Callable

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.documents import Json, JsonObject
from penstock.errors import (
    IncompatibleSchemaError,
    InvalidSchemaError,
    PenstockError,
    ServiceError,
    TryAgainError,
    UnknownSchemaError,
    UnknownSubjectError,
)
from penstock.registry.access import Access, check_address
from penstock.registry.asked import INVALID_SCHEMA, Asked, Refusal
from penstock.registry.limits import Limits
from penstock.registry.records import SchemaRecord
from penstock.registry.registry import Registry
from penstock.schemas.compatibility import SchemaKind
from penstock.schemas.compatibility.protobuf.extra import has_protobuf
from penstock.web import strict_json

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_LARGEST_BODY = 4 * 2**20
_LONGEST_MESSAGE = 20_000
_JUDGED_AT_ONCE, _MOST_WAITING = 16, 200
TIMED_OUT = 50002
_WITH_BODY = ("POST", "PUT")
Answer = Callable[[Asked], Json]
_BY_ID = ("schema", "schemaType", "references", "metadata", "ruleSet")
_PLACE = ("subject", "version")


def _shown(record: SchemaRecord, *names: str) -> JsonObject:
    whole = {
        "subject": record.subject,
        "version": record.version,
        "id": record.id,
        "schema": record.text,
        "schemaType": None if record.kind is SchemaKind.AVRO else record.kind.value,
        "references": [vars(each) for each in record.references] or None,
        "metadata": json.loads(record.metadata) if record.metadata else None,
        "ruleSet": json.loads(record.rules) if record.rules else None,
    }
    return {
        name: value for name, value in whole.items() if value is not None and (not names or name in names)
    }


def _register(asked: Asked) -> JsonObject:
    subject, metadata, rules = asked.path("subject"), asked.metadata(), asked.rules()
    return _shown(asked.registry.register(subject, *asked.schema(), metadata=metadata, rules=rules))


def _lookup(asked: Asked) -> JsonObject:
    subject, deleted = asked.path("subject"), asked.flag("deleted")
    found = asked.registry.lookup(
        subject, *asked.schema(), metadata=asked.metadata(), rules=asked.rules(), deleted=deleted
    )
    return _shown(asked.wanted(found))


def _check(asked: Asked, version: int | None) -> JsonObject:
    try:
        problems = asked.registry.check(asked.path("subject"), *asked.schema(), version)
    except UnknownSubjectError as error:
        if error.code == 40401:
            return {"is_compatible": True}
        raise
    answer: JsonObject = {"is_compatible": not problems}
    return answer | ({"messages": [str(each) for each in problems]} if asked.flag("verbose") else {})


def _check_version(asked: Asked) -> JsonObject:
    wanted = asked.version()
    if wanted is None:
        try:
            wanted = asked.registry.version(asked.path("subject")).version
        except UnknownSubjectError:
            return {"is_compatible": True}
    return _check(asked, wanted)


def _version(asked: Asked) -> JsonObject:
    found = asked.registry.version(asked.path("subject"), asked.version(), deleted=asked.flag("deleted"))
    return _shown(asked.wanted(found))


def _delete_version(asked: Asked) -> int:
    subject, wanted, permanent = asked.path("subject"), asked.version(), asked.flag("permanent")
    version = wanted or asked.registry.version(subject, deleted=permanent).version
    return asked.registry.delete(subject, version, permanent=permanent)[0]


def _kinds() -> list[str]:
    return [each.value for each in SchemaKind if each is not SchemaKind.PROTOBUF or has_protobuf()]


def _uses(asked: Asked) -> list[SchemaRecord]:
    return asked.registry.uses_of(asked.id())


def _set_mode(asked: Asked, subject: str | None) -> JsonObject:
    mode = asked.mode()
    asked.registry.set_mode(mode, subject)
    return {"compatibility": mode.value}


def _mode_of(asked: Asked) -> JsonObject:
    registry, subject = asked.registry, asked.path("subject")
    mode = registry.mode(subject) if asked.flag("defaultToGlobal") else registry.own_mode(subject)
    return {"compatibilityLevel": mode.value}


def _unset_mode(asked: Asked) -> JsonObject:
    mode = asked.registry.own_mode(asked.path("subject"))
    asked.registry.set_mode(None, asked.path("subject"))
    return {"compatibilityLevel": mode.value}


_ROUTES: list[tuple[str, str, Answer]] = [
    ("GET", "/", lambda _: {}),
    ("GET", "/schemas/types", lambda _: _kinds()),
    (
        "GET",
        "/schemas/ids/{id}",
        lambda asked: _shown(asked.wanted(asked.registry.schema(asked.id())), *_BY_ID),
    ),
    (
        "GET",
        "/schemas/ids/{id}/schema",
        lambda asked: _Raw(asked.registry.schema(asked.id()).text),
    ),
    ("GET", "/schemas/ids/{id}/subjects", lambda asked: sorted({each.subject for each in _uses(asked)})),
    ("GET", "/schemas/ids/{id}/versions", lambda asked: [_shown(each, *_PLACE) for each in _uses(asked)]),
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


def application(registry: Registry, *, token: str | None = None, limits: Limits | None = None) -> Starlette:
    """Return the registry's HTTP application; from now on, the registry judges schemas within the limits.

    Without a token it must not be served but on loopback.
    """
    registry.isolate(limits or Limits())
    routes = [Route(path, _endpoint(registry, answer), methods=[method]) for method, path, answer in _ROUTES]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Access, token=token), Middleware(_EncodedPath)],
        exception_handlers=dict.fromkeys((Refusal, HTTPException, PenstockError), _failed),
    )


def serve(
    registry: Registry,
    *,
    host: str = "127.0.0.1",
    port: int = 8081,
    token: str | None = None,
    limits: Limits | None = None,
) -> None:
    """Serve the registry until the process is asked to stop; strangers only with a token."""
    check_address(host, token)
    app = application(registry, token=token, limits=limits)
    uvicorn.run(app, host=host, port=port, log_level="warning")


class _EncodedPath:
    """Lets routes see the path as it was sent, so that a slash in a subject (%2F) parts nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope.get("raw_path"):
            scope = {**scope, "path": scope["raw_path"].partition(b"?")[0].decode("latin-1")}
        await self._app(scope, receive, send)


def _endpoint(registry: Registry, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        data = await _body(request)
        return await anyio.to_thread.run_sync(respond, request, data, limiter=_limiter(request))

    def respond(request: Request, data: bytes) -> Response:
        found = answer(Asked(request, registry, _object(data) if request.method in _WITH_BODY else {}))
        if isinstance(found, _Raw):
            return Response(str(found), media_type=CONTENT_TYPE)
        return JSONResponse(found, media_type=CONTENT_TYPE)

    return endpoint


def _limiter(request: Request) -> anyio.CapacityLimiter | None:
    """Schemas wait for workers in threads of their own, so that whoever only reads finds one."""
    if request.method != "POST":
        return None
    state = request.app.state
    if not hasattr(state, "judging"):
        state.judging = anyio.CapacityLimiter(_JUDGED_AT_ONCE)
    limiter: anyio.CapacityLimiter = state.judging
    if limiter.statistics().tasks_waiting > _MOST_WAITING:
        raise Refusal(503, TIMED_OUT, "too many schemas wait to be judged; try again")
    return limiter


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > _LARGEST_BODY:
            raise Refusal(413, 413, f"the body is larger than {_LARGEST_BODY} bytes")
    return bytes(data)


def _object(data: bytes) -> JsonObject:
    try:
        found = strict_json.parse(data, unique=False)
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
        case ServiceError():
            return _error(503, TIMED_OUT, str(error))
        case TryAgainError():
            return _error(500, 50003, str(error))
    return _error(500, 50001, str(error))


def _error(status: int, code: int, message: str) -> Response:
    safe = message[:_LONGEST_MESSAGE].encode(errors="backslashreplace").decode()
    return JSONResponse({"error_code": code, "message": safe}, status, media_type=CONTENT_TYPE)
