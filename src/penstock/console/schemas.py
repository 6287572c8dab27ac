"""Registered schemas as documents: subjects, their versions, and how two of them differ."""

import difflib
import json

from penstock.documents import JsonObject
from penstock.registry import Registry, SchemaRecord
from penstock.schemas import SchemaKind


def subjects(registry: Registry | None) -> list[JsonObject]:
    """Return all subjects with their newest version; none without a registry."""
    if registry is None:
        return []
    found = [(each, registry.version(each)) for each in registry.subjects()]
    return [
        {
            "subject": subject,
            "versions": newest.version,
            "id": newest.id,
            "type": newest.kind.value,
            "mode": registry.mode(subject).value,
        }
        for subject, newest in found
    ]


def subject_details(registry: Registry, subject: str) -> JsonObject:
    """Return the versions of a subject, each with what it changed."""
    versions = registry.versions(subject)
    texts = [pretty(each) for each in versions]
    shown = [
        {
            "version": each.version,
            "id": each.id,
            "type": each.kind.value,
            "text": text,
            "diff": _diff(texts[number - 1], text) if number else [],
        }
        for number, (each, text) in enumerate(zip(versions, texts, strict=True))
    ]
    return {"subject": subject, "mode": registry.mode(subject).value, "versions": shown}


def pretty(record: SchemaRecord) -> str:
    """Return the text of a schema as a person would lay it out."""
    if record.kind is SchemaKind.PROTOBUF:
        return record.text
    return json.dumps(json.loads(record.text), indent=2, ensure_ascii=False)


def _diff(before: str, after: str) -> list[str]:
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
