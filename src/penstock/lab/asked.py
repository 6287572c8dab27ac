"""What a browser asks of the lab: bodies of a known shape, and nothing besides."""

from collections.abc import Mapping
from typing import Any

from penstock.documents import JsonObject
from penstock.gateway.refusal import Refusal
from penstock.web import strict_json


def body(data: bytes, *names: str) -> JsonObject:
    """Return the object of a body, which has just these names."""
    try:
        found = strict_json.parse(data)
    except ValueError as error:
        raise Refusal(400, "lab.json", f"the body is not valid JSON: {error}") from None
    if not isinstance(found, dict) or found.keys() != set(names):
        raise Refusal(422, "lab.body", f"expected an object with {', '.join(names) or 'nothing in it'}")
    return found


def text(asked: Mapping[str, Any], name: str) -> str:
    """Return a text that was asked for."""
    found = asked[name]
    if not isinstance(found, str) or not found:
        raise Refusal(422, "lab.body", f"{name} is {str(found)[:50]!r}, expected a text")
    return found


def values(asked: Mapping[str, Any]) -> JsonObject:
    """Return the values of controls, by name; the experiment checks each of them."""
    found = asked["values"]
    if not isinstance(found, dict):
        raise Refusal(422, "lab.body", f"values is {str(found)[:50]!r}, expected an object")
    return found
