"""JSON text, read strictly and written in one way only."""

import json
from typing import Any

from penstock.errors import InvalidSchemaError


def load(text: str) -> Any:
    """The JSON value of a text; what parsers understand differently is refused."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidSchemaError(
            f"not JSON: {error.msg}", where=place, hint="check the schema's text"
        ) from None


def dump(value: Any) -> str:
    """Compact JSON that keeps the order of attributes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def dump_sorted(value: Any) -> str:
    """Compact JSON with sorted attributes, where 1 and 1.0 are one number: equal texts mean equal values."""
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise InvalidSchemaError(f"attribute {key!r} is given twice", hint="keep one of them")
        result[key] = value
    return result


def _constant(name: str) -> Any:
    raise InvalidSchemaError(f"{name} is not JSON", hint="use a finite number")
