"""POST /topics/{topic}: events of strangers, checked, written, and answered with their positions."""

import os
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.documents import Json
from penstock.events import Event
from penstock.gateway.clients import Clients
from penstock.gateway.declared import Declared
from penstock.gateway.incoming import EventReader, parsed
from penstock.gateway.refusal import JsonResponse, Refusal
from penstock.gateway.submission import Outgoing, Positions, Prepared, Submission, key_digest
from penstock.gateway.trace_context import Headers, trace_headers
from penstock.log import Topic

KEY = "Idempotency-Key"
REPEATED = "Idempotency-Repeated"
LONGEST_KEY = 200


class Preparation:
    """Makes messages of a topic, and the answer to their request, of JSON."""

    def __init__(self, topic: Topic[Any], clients: Clients, most: int) -> None:
        self.topic, self._clients, self._most = topic, clients, most
        self._reader = EventReader(topic)

    def prepared(self, values: Json, key: bytes | None, headers: Headers = ()) -> Prepared:
        """Return the messages of one event or a list of them; raise the first refusal."""
        listed = values if isinstance(values, list) else [values]
        if not 0 < len(listed) <= self._most:
            message = f"the list has {len(listed)} events, expected 1 to {self._most}"
            raise Refusal(422, "gateway.list", message, hint="send several requests")
        events = [
            self._reader.read(each, f"[{number}]" if listed is values else "", _id(key, number))
            for number, each in enumerate(listed)
        ]
        self._clients.check_there(self.topic.name)
        codec = self._clients.codec(self.topic)
        name, key_of = self.topic.name, self.topic.key_of
        messages = (Outgoing(name, key_of(each), codec.encode(each), headers) for each in events)
        return Prepared(tuple(messages), partial(_answer, self.topic.name, events))


class Producing:
    """Writes the events of requests: a single one as it comes, lists and what has a key in transactions."""

    def __init__(self, declared: Declared, clients: Clients, most: int) -> None:
        self._declared, self._clients = declared, clients
        self._preparations = {
            name: Preparation(topic, clients, most)
            for name, topic in declared.topics.items()
            if declared.is_open(topic)
        }

    async def post(self, request: Request) -> Response:
        """Answer a request with the positions of its events."""
        preparation = self._preparation(request.path_params["topic"])
        check_json(request)
        name = _key_in(request)
        key = None if name is None else key_digest(preparation.topic.name, name)
        body, trace = await request.body(), trace_headers(request.headers)
        try:
            content: Prepared | Refusal = await run_in_threadpool(_read, preparation, body, key, trace)
        except Refusal as refusal:
            content = refusal
        return await self.write(content, key, sha256(body).digest())

    async def write(self, content: Prepared | Refusal, key: bytes | None, body: bytes) -> Response:
        """Write what a request has come to, once for its key, and answer."""
        if key is None and isinstance(content, Refusal):
            raise content
        if key is None and isinstance(content, Prepared) and len(content.messages) == 1:
            return JsonResponse(content.answer([await self._clients.delivery.send(content.messages[0])]))
        made = Submission(key or os.urandom(32), body, content)
        reply = await self._clients.shards.submit(made)
        return JsonResponse(reply.answer, headers={REPEATED: "true"} if reply.repeated else None)

    def _preparation(self, name: str) -> Preparation:
        if name in self._preparations:
            return self._preparations[name]
        topic = self._declared.topic(name)
        by = self._declared.written.get(name, f"a capture ({topic.format})")
        raise Refusal(
            405,
            "gateway.read-only",
            f"topic {name!r} is written by {by}",
            hint="read it, or declare a topic of your own",
            headers={"Allow": "GET"},
        )


def check_json(request: Request) -> None:
    """Refuse a body that is not said to be JSON, which a page may send without being asked."""
    kind, _, more = request.headers.get("content-type", "").lower().partition(";")
    is_json = kind.strip() == "application/json" or kind.strip().endswith("+json")
    charset = more.strip().removeprefix("charset=").strip('"') or "utf-8"
    if is_json and charset == "utf-8" and request.headers.get("content-encoding", "identity") == "identity":
        return
    raise Refusal(
        415,
        "gateway.content-type",
        f"the body is {request.headers.get('content-type', 'of no type')[:100]!r}",
        hint="send Content-Type: application/json, in UTF-8 and not compressed",
    )


def _read(preparation: Preparation, body: bytes, key: bytes | None, trace: Headers) -> Prepared:
    return preparation.prepared(parsed(body), key, trace)


def _key_in(request: Request) -> str | None:
    found = request.headers.get(KEY)
    if found is None or (0 < len(found) <= LONGEST_KEY and found.isascii() and found.isprintable()):
        return found
    message = f"{KEY} is {found[:50]!r}"
    hint = f"use 1 to {LONGEST_KEY} printable characters of ASCII"
    raise Refusal(400, "gateway.key", message, hint=hint)


def _id(key: bytes | None, number: int) -> str | None:
    """The id of an event that has none: the same whenever the request is repeated."""
    return None if key is None else str(uuid5(UUID(bytes=key[:16]), str(number)))


def _answer(topic: str, events: Sequence[Event], positions: Positions) -> bytes:
    places = zip(events, positions, strict=True)
    shown = [{"id": event.id, "partition": place[0], "offset": place[1]} for event, place in places]
    return msgspec.json.encode({"topic": topic, "events": shown})
