"""JSON of strangers: what parsers understand differently, or can't write again, is refused."""

import json
import re
from collections import Counter
from collections.abc import Callable
from math import isfinite
from typing import Any

from penstock.documents import Json, JsonObject

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")


def finite(text: str) -> float:
    """Return the number of a text; ValueError if it is too large, or none."""
    found = float(text)
    if not isfinite(found):
        raise ValueError(f"{text[:20]} is not a finite number")
    return found


def parse(
    data: bytes,
    *,
    parse_float: Callable[[str], Any] = finite,
    parse_int: Callable[[str], Any] = int,
    unique: bool = True,
) -> Json:
    """Return the value of JSON in UTF-8; ValueError says what is wrong with it.

    >>> parse(b'{"a": 1}')
    {'a': 1}

    With `unique`, an object that has a name twice is refused.
    """
    text = data.decode()
    hook = _unique if unique else None
    try:
        found = json.loads(
            text, parse_constant=finite, parse_float=parse_float, parse_int=parse_int, object_pairs_hook=hook
        )
        if _SURROGATE.search(text):
            _refuse_lone_surrogates(found)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return found


def _unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"it has the name {twice[:50]!r} twice in one object")
    return found


def _refuse_lone_surrogates(value: Json) -> None:
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half of a surrogate pair, which is no character") from None
