"""Rules and metadata that clients keep with a schema: read, checked for their form, never changed."""

import json

from penstock.documents import Json
from penstock.errors import InvalidSchemaError
from penstock.registry.records import SchemaRecord

_NONE = "{}"
_LISTS = ("migrationRules", "domainRules", "encodingRules")


def metadata_text(given: Json) -> str | None:
    """The JSON text of a `metadata`, None if there is none."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise InvalidSchemaError(
            f"`metadata` is {str(given)[:100]!r}", hint="give an object, or leave it out"
        )
    return _dump(given)


def rules_text(given: Json) -> str | None:
    """The JSON text of a `ruleSet`, None if there is none."""
    if given is None:
        return None
    if not isinstance(given, dict) or not all(_is_list_of_rules(given.get(name)) for name in _LISTS):
        hint = f"give an object whose {', '.join(_LISTS)} are lists of rules with a name, or leave it out"
        raise InvalidSchemaError(f"`ruleSet` is {str(given)[:100]!r}", hint=hint)
    return _dump(given)


def kept(given: str | None, newest: str | None) -> str | None:
    """What a new version has: what is given, else what the newest has; an empty object ends that."""
    found = newest if given is None else given
    return None if found == _NONE else found


def satisfies(record: SchemaRecord, given: SchemaRecord) -> bool:
    """Whether a record is the schema that is given, with its metadata and rules where it brings any."""
    if (record.kind, record.canonical, record.references) != (given.kind, given.canonical, given.references):
        return False
    pairs = ((record.metadata, given.metadata), (record.rules, given.rules))
    return all(wanted is None or wanted == (found or _NONE) for found, wanted in pairs)


def run_at_write(rules: str | None) -> list[str]:
    """The names of the rules that a writer has to run."""
    given = json.loads(rules) if rules else {}
    found = [rule for name in ("domainRules", "encodingRules") for rule in given.get(name) or ()]
    return [str(rule["name"]) for rule in found if rule.get("mode") != "READ" and not rule.get("disabled")]


def _is_list_of_rules(value: Json) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and all(
        isinstance(rule, dict) and isinstance(rule.get("name"), str) for rule in value
    )


def _dump(value: Json) -> str:
    return json.dumps(_filled(value), separators=(",", ":"), sort_keys=True)


def _filled(value: Json) -> Json:
    """A value without its empty parts: some clients send back as empty what they were not given."""
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {name: _filled(each) for name, each in value.items()}
    return {name: each for name, each in inner.items() if each not in (None, [], {})}
