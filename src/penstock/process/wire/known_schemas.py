"""The schemas by which a topic's messages are decoded."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import UnknownSubjectError
from penstock.log import Topic
from penstock.registry import Registry
from penstock.schemas import WrittenSchema


@dataclass(frozen=True)
class KnownSchemas:
    """The schemas of a topic's messages by their numbers, and the numbers that nobody knows."""

    schemas: Mapping[int, WrittenSchema] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()


def known_schemas(topic: Topic[Any], registry: Registry | None = None) -> KnownSchemas:
    """Return every schema that the registry has for a topic; plain JSON needs none."""
    if topic.format == "json" or registry is None:
        return KnownSchemas()
    try:
        records = registry.versions(topic.subject, deleted=True)
    except UnknownSubjectError:
        return KnownSchemas()
    return KnownSchemas({each.id: registry.as_written(each) for each in reversed(records)})
