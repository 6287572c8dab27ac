"""The OpenAPI document: made of the declared classes, so that it is never out of date."""

from typing import Any

import msgspec

from penstock.documents import JsonObject
from penstock.gateway.consuming import MOST
from penstock.gateway.declared import Declared
from penstock.gateway.incoming import made_anew
from penstock.gateway.limits import Limits
from penstock.gateway.producing import KEY, LONGEST_KEY, REPEATED
from penstock.gateway.view import View
from penstock.gateway.webhook import SignedWebhook
from penstock.log import Topic
from penstock.schemas.shape import shape_of

_REFERENCE = "#/components/schemas/{name}"
_ERROR = {
    "type": "object",
    "required": ["id", "message"],
    "properties": {
        "id": {"type": "string", "description": "stable across releases"},
        "message": {"type": "string"},
        "hint": {"type": "string", "description": "what to do"},
        "field": {"type": "string"},
        "value": {"description": "the value seen"},
        "rule": {"type": "string", "description": "the rule that the value breaks"},
    },
}
_MEANINGS = {
    "400": "not understood",
    "401": "the token is missing, or wrong",
    "403": "a page of another origin",
    "404": "not served here",
    "405": "not by this method",
    "408": "the body did not come in time",
    "409": "there is no history to ask for a time",
    "410": "deleted by retention",
    "413": "too large",
    "415": "not JSON",
    "416": "beyond the end",
    "421": "not this server's name",
    "422": "does not fit: which field, the value and the rule",
    "429": "too many requests, or the producer's buffer is full: wait for Retry-After",
    "503": "the broker or the database is away",
}
_ALWAYS = ("400", "401", "403", "404", "408", "413", "421", "429", "503")


def document(declared: Declared, limits: Limits) -> JsonObject:
    """Return the document of what is declared."""
    return _Document(declared, limits).whole()


class _Document:
    def __init__(self, declared: Declared, limits: Limits) -> None:
        self._declared, self._limits = declared, limits
        twins = {name: shape_of(topic.event).strict for name, topic in declared.topics.items()}
        found, self._schemas = msgspec.json.schema_components(twins.values(), ref_template=_REFERENCE)
        self._events = dict(zip(twins, found, strict=True))

    def whole(self) -> JsonObject:
        return {
            "openapi": "3.1.0",
            "info": {"title": "Penstock gateway", "version": "1"},
            "paths": self._paths(),
            "components": {
                "schemas": {**self._schemas, "Error": _ERROR},
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{"token": []}, {}],
        }

    def _paths(self) -> JsonObject:
        works = _answer("it works", {"type": "object"})
        paths = {"/health": {"get": {"operationId": "health", "security": [], **_responses(works)}}}
        for name, topic in self._declared.topics.items():
            if self._declared.is_open(topic):
                paths[f"/topics/{name}"] = {"post": self._write(name, topic)}
            paths[f"/topics/{name}/events"] = {"get": self._read(name, topic)}
        for name, view in self._declared.views.items():
            paths[f"/views/{name}"] = {"get": _rows(view)}
            paths["/".join([f"/views/{name}", *(f"{{{key}}}" for key in view.keys)])] = {"get": _row(view)}
        for name, hook in self._declared.webhooks.items():
            paths[f"/webhooks/{name}"] = {"post": _deliver(hook)}
        return paths

    def _write(self, name: str, topic: Topic[Any]) -> JsonObject:
        event = self._given(name, topic)
        listed = {"type": "array", "items": event, "minItems": 1, "maxItems": self._limits.events}
        answer = _answer("acknowledged by the broker", _POSITIONS)
        answer["headers"] = {REPEATED: {"schema": {"type": "string"}, "description": "answered so before"}}
        key = {"type": "string", "pattern": f"^[!-~]{{1,{LONGEST_KEY}}}$"}
        return {
            "operationId": f"write_{name}",
            "summary": f"Write {topic.event.__name__} events",
            "parameters": [_parameter(KEY, key, "header")],
            "requestBody": {"required": True, "content": _json({"anyOf": [event, listed]})},
            **_responses(answer, "415", "422"),
        }

    def _given(self, name: str, topic: Topic[Any]) -> JsonObject:
        """The schema of an event that comes in: what the class makes anew may be missing."""
        whole = self._schemas[self._events[name]["$ref"].rpartition("/")[2]]
        made = made_anew(topic.event)
        return {**whole, "required": [each for each in whole.get("required", ()) if each not in made]}

    def _read(self, name: str, topic: Topic[Any]) -> JsonObject:
        known = {} if topic.is_captured else {"event": self._events[name]}
        event = {"type": "object", "required": ["partition", "offset"], "properties": known}
        shown = {"events": {"type": "array", "items": event}, "next": {"type": "string"}}
        return {
            "operationId": f"read_{name}",
            "summary": f"Read {topic.event.__name__} events from a place on, or wait for them",
            "parameters": [
                _parameter("partition", _whole(0)),
                _parameter("offset", _whole(0)),
                _parameter("from", {"type": "string", "description": "beginning, end, a time, or `next`"}),
                _parameter("limit", _whole(1, MOST)),
                _parameter("wait", _whole(0, round(self._limits.wait.total_seconds()))),
            ],
            **_responses(_answer("events", {"type": "object", "properties": shown}), "410", "416"),
        }


def _rows(view: View) -> JsonObject:
    rows = {"type": "array", "items": {"type": "object"}}
    shown = {"rows": rows, "next": {"type": ["string", "null"]}}
    keys = {"type": "array", "items": {"type": "string"}, "maxItems": len(view.keys)}
    return {
        "operationId": f"rows_{view.name}",
        "summary": "Read rows by their key, or the first ones in another order",
        "parameters": [
            _parameter("limit", _whole(1, MOST)),
            _parameter("after", {**keys, "description": f"the last {', '.join(view.keys)}"}),
            _parameter("order", {"type": "string", "description": "columns; -column is descending"}),
            *_times(view),
        ],
        **_responses(_answer("rows", {"type": "object", "properties": shown}), "409", "422"),
    }


def _row(view: View) -> JsonObject:
    keys = [_parameter(key, {"type": "string", "minLength": 1}, "path") for key in view.keys]
    return {
        "operationId": f"row_{view.name}",
        "summary": "Read the row of a key",
        "parameters": [*keys, *_times(view)],
        **_responses(_answer("the row", {"type": "object"}), "409", "422"),
    }


def _times(view: View) -> list[JsonObject]:
    return [_parameter("at", {"type": "string", "format": "date-time"})] if view.has_history else []


def _deliver(hook: SignedWebhook) -> JsonObject:
    return {
        "operationId": f"deliver_{hook.name}",
        "summary": f"Deliver a signed request, which becomes {hook.topic.event.__name__} events",
        "security": [],
        "parameters": [_parameter(each, {"type": "string"}, "header") for each in hook.headers],
        "requestBody": {"required": True, "content": _json({})},
        **_responses(_answer("acknowledged by the broker", _POSITIONS), "422"),
    }


_POSITIONS = {
    "type": "object",
    "required": ["topic", "events"],
    "properties": {
        "topic": {"type": "string"},
        "events": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "partition", "offset"],
                "properties": {
                    "id": {"type": "string"},
                    "partition": {"type": "integer"},
                    "offset": {"type": "integer"},
                },
            },
        },
    },
}


def _json(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


def _whole(least: int, most: int = 2**63 - 1) -> JsonObject:
    return {"type": "integer", "minimum": least, "maximum": most}


def _parameter(name: str, schema: JsonObject, place: str = "query") -> JsonObject:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def _answer(description: str, schema: JsonObject) -> JsonObject:
    return {"description": description, "content": _json(schema)}


def _responses(answer: JsonObject, *more: str) -> JsonObject:
    shown = _json({"$ref": "#/components/schemas/Error"})
    refused = {each: {"description": _MEANINGS[each], "content": shown} for each in (*_ALWAYS, *more)}
    return {"responses": {"200": answer, **refused}}
