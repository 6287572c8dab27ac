"""Arrays as PostgreSQL spells them."""

import re

_BOUNDS = re.compile(rb"^(\[-?\d+:-?\d+\])+=")
_TOKEN = re.compile(rb'[{},]|"((?:[^"\\]|\\.)*)"|((?:[^{},"\\]|\\.)+)', re.DOTALL)
_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)


def elements(literal: bytes) -> list[object]:
    """Return the elements as bytes, null as None, further dimensions as lists.

    >>> elements(b'{1,NULL,"a \\\\"b\\\\""}')
    [b'1', None, b'a "b"']
    >>> elements(b"{{1,2},{3,4}}")
    [[b'1', b'2'], [b'3', b'4']]
    """
    root: list[object] = []
    open_lists = [root]
    for token in _TOKEN.finditer(_BOUNDS.sub(b"", literal)):
        whole = token[0]
        if whole == b"{":
            inner: list[object] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
        elif whole == b"}":
            open_lists.pop()
        elif whole != b",":
            open_lists[-1].append(_element(token))
    return root[0]  # type: ignore[return-value]


def _element(token: "re.Match[bytes]") -> bytes | None:
    if token[1] is not None:
        return _ESCAPE.sub(rb"\1", token[1])
    bare = token[2]
    return None if bare.upper() == b"NULL" else _ESCAPE.sub(rb"\1", bare)
