"""The lineages of a topic's fields: what its class and its upcasters say of them."""

from dataclasses import replace
from typing import Any

import msgspec

from penstock.events.kinds import Field, Kind, Many, Mapped, Maybe, Record, fields_of
from penstock.log import Topic
from penstock.process.columns.lineage import Lineage
from penstock.schemas.upcasting import past


def lineages(topic: Topic[Any]) -> dict[str, Lineage]:
    """Return the lineage of each field of a topic's events."""
    return {each.name: _followed(each, topic) for each in fields_of(topic.event)}


def _followed(field: Field, topic: Topic[Any]) -> Lineage:
    before, own = past(field.name, topic.upcasts), _of_field(field)
    for default in before.defaults:
        own = replace(own, default=msgspec.to_builtins(default), required=False)
    return replace(own, names=before.names, since=before.since, required=own.required or before.made)


def _of_field(field: Field) -> Lineage:
    inner = _record(field.kind)
    fields = {} if inner is None else {each.name: _of_field(each) for each in fields_of(inner)}
    default = None if field.required else msgspec.to_builtins(field.default)
    return Lineage(default=default, required=field.required, fields=fields)


def _record(kind: Kind) -> type | None:
    match kind:
        case Record(cls):
            return cls
        case Maybe(inner) | Many(inner) | Mapped(inner):
            return _record(inner)
    return None
