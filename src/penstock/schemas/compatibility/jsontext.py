"""JSON text, read strictly and written in one way only."""

import json
import re
from math import isinf

from penstock.documents import Json, JsonObject
from penstock.errors import InvalidSchemaError

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def load(text: str) -> Json:
    """The JSON value of a text; what parsers understand differently is refused."""
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidSchemaError(
            f"not JSON: {error.msg}", where=place, hint="check the schema's text"
        ) from None
    except ValueError as error:  # a whole number of thousands of digits
        raise InvalidSchemaError(f"not JSON: {error}", hint="use a smaller number") from None
    if has_lone_surrogate(text, found):
        raise InvalidSchemaError("half of a surrogate pair is no character", hint="check its \\u escapes")
    return found


def has_lone_surrogate(text: str, value: Json) -> bool:
    """Whether a JSON value, read from a text, holds half of a character: UTF-8 has no bytes for it."""
    if not _SURROGATE.search(text):
        return False
    try:
        dump(value).encode()
    except UnicodeEncodeError:
        return True
    return False


def dump(value: Json) -> str:
    """Compact JSON that keeps the order of attributes."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def dump_sorted(value: Json) -> str:
    """Compact JSON with sorted attributes, where 1 and 1.0 are one number: equal texts mean equal values."""
    return json.dumps(_plain(value), separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def _plain(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _object(pairs: list[tuple[str, Json]]) -> JsonObject:
    result: JsonObject = {}
    for key, value in pairs:
        if key in result:
            raise InvalidSchemaError(f"attribute {key!r} is given twice", hint="keep one of them")
        result[key] = value
    return result


def _finite(text: str) -> float:
    found = float(text)
    if isinf(found):
        raise InvalidSchemaError(f"the number {text[:20]} is too large", hint="use a finite number")
    return found


def _constant(name: str) -> Json:
    raise InvalidSchemaError(f"{name} is not JSON", hint="use a finite number")
