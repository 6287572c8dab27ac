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
    """The schemas of a topic's messages by their numbers, and the numbers that nobody knows.

    `keys` are those of Kafka's keys, which captured tables have.
    """

    schemas: Mapping[int, WrittenSchema] = field(default_factory=dict)
    unknown: frozenset[int] = frozenset()
    keys: Mapping[int, WrittenSchema] = field(default_factory=dict)


def known_schemas(topic: Topic[Any], registry: Registry | None = None) -> KnownSchemas:
    """Return every schema that the registry has for a topic; plain JSON needs none."""
    if not topic.is_registered or registry is None:
        return KnownSchemas()
    keys = _versions(topic.key_subject, registry) if topic.is_captured else {}
    return KnownSchemas(_versions(topic.subject, registry), keys=keys)


def _versions(subject: str, registry: Registry) -> dict[int, WrittenSchema]:
    try:
        records = registry.versions(subject, deleted=True)
    except UnknownSubjectError:
        return {}
    return {each.id: registry.as_written(each) for each in reversed(records)}
