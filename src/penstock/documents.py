"""JSON documents, as they are decoded, and as they can be shown."""

from typing import Any

Json = Any  # an object, a list, text, a number, a boolean or None: what it is, its writer knows
JsonObject = dict[str, Json]
_DEEPEST = 64  # lists and objects within each other


def presentable(value: Any, depth: int = 0) -> Any:
    r"""Return a value that can be written as JSON again, whatever a stranger has put into it.

    >>> presentable({"name": "Ann \ud83d"})
    {'name': 'Ann \\ud83d'}

    Half of a surrogate pair, which JSON may name and UTF-8 can't hold, is spelled out; what is nested very
    deeply is left out.
    """
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if not isinstance(value, dict | list):
        return value
    if depth == _DEEPEST:
        return "…"
    if isinstance(value, list):
        return [presentable(each, depth + 1) for each in value]
    return {presentable(name): presentable(each, depth + 1) for name, each in value.items()}
