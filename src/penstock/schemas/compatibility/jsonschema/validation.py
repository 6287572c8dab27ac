"""Validators whose expressions are matched in linear time: they may come from anybody."""

from collections.abc import Iterator
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft7Validator, Draft202012Validator, extend

from penstock.documents import Json, JsonObject
from penstock.schemas.compatibility.jsonschema.dialect import Dialect
from penstock.schemas.compatibility.jsonschema.expression import UndecidedError, search


def valid(value: Json, schema: Json, dialect: Dialect) -> bool:
    """Whether a value certainly satisfies a schema, in every draft that the dialect may mean."""
    try:
        return all(validator(schema).is_valid(value) for validator in _VALIDATORS[dialect])
    except UndecidedError:
        return False


def _matches(pattern: str, text: str) -> bool:
    found = search(pattern, text)
    if found is None:
        raise UndecidedError(f"whether {pattern!r} matches can't be said")
    return found


def _pattern(validator: Validator, pattern: str, value: Json, _: Json) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not _matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: JsonObject, value: Json, _: Json
) -> Iterator[ValidationError]:
    for pattern, schema in patterns.items() if validator.is_type(value, "object") else ():
        for name in value:
            if _matches(pattern, name):
                yield from validator.descend(value[name], schema, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, allowed: Json, value: Json, schema: Json
) -> Iterator[ValidationError]:
    for name in value if validator.is_type(value, "object") else ():
        patterns = schema.get("patternProperties", {})
        if name not in schema.get("properties", {}) and not any(_matches(each, name) for each in patterns):
            yield from validator.descend(value[name], allowed, path=name)


_KEYWORDS: Any = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
_DRAFT_07 = extend(Draft7Validator, _KEYWORDS)  # type: ignore[no-untyped-call]
_DRAFT_2020_12 = extend(Draft202012Validator, _KEYWORDS)  # type: ignore[no-untyped-call]
_VALIDATORS: dict[Dialect, tuple[type[Validator], ...]] = {
    Dialect.DRAFT_07: (_DRAFT_07,),
    Dialect.DRAFT_2020_12: (_DRAFT_2020_12,),
    Dialect.UNDECLARED: (_DRAFT_07, _DRAFT_2020_12),
}
