"""A form for a topic's events, made from the schema of their class."""

from typing import Any

import msgspec

from penstock.documents import JsonObject
from penstock.gateway.declared import Declared
from penstock.gateway.incoming import made_anew
from penstock.log import Topic
from penstock.schemas.shape import shape_of


def event_form(declared: Declared, name: str) -> JsonObject | None:
    """Return the JSON Schema of what can be sent to a topic; None if it is not declared, or not open."""
    topic = declared.topics.get(name)
    if topic is None or not declared.is_open(topic):
        return None
    return _schema(topic)


def closed_because(declared: Declared, name: str) -> str:
    """Return why a topic can't be written here."""
    topic = declared.topics.get(name)
    if topic is None:
        return "no module declares this topic: start the console with -m"
    if topic.is_captured:
        return "a capture writes this topic"
    return f"flow {declared.written[name]} writes this topic" if name in declared.written else ""


def _schema(topic: Topic[Any]) -> JsonObject:
    made = made_anew(topic.event)
    _, schemas = msgspec.json.schema_components((shape_of(topic.event).strict,), ref_template="{name}")
    whole = schemas[topic.event.__name__]
    required = [each for each in whole.get("required", ()) if each not in made]
    return {**whole, "required": required, "made": sorted(made), "others": schemas}
