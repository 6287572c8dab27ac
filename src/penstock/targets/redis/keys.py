"""Names of keys in Redis: those of rows, and Penstock's own, which all begin with `penstock:`."""

import re
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.errors import DataError, TargetError

OWN = "penstock:"
PREFIXES = f"{OWN}prefixes"  # a set: all that targets have declared
_PART = re.compile(rb"((?:\\.|[^\\:])*)(:|\Z)", re.DOTALL)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"([*?\[\]\\^])")


def ledger_key(sink: str) -> str:
    """The hash that holds a sink's ledger: how many lanes, and the token and the entry of each."""
    return f"{OWN}ledger:{sink}"


def pointer_key(prefix: str) -> str:
    """The text that says under which prefix a target's rows are, if not under its own."""
    return f"{OWN}prefix:{prefix}"


def leftovers_key(prefix: str) -> str:
    """The set of prefixes that a target's rows were under before, and that are to be removed."""
    return f"{OWN}leftovers:{prefix}"


def key_of(prefix: str, *parts: str | bytes | int) -> bytes:
    r"""Return the key of a row: one part is taken as it is, several are joined, `\` and `:` in them escaped.

    >>> key_of("user", "a:b"), key_of("user", "a:b", 7)
    (b'user:a:b', b'user:a\\:b:7')
    """
    if any(part is None for part in parts):
        raise DataError(f"a part of the key {parts!r} is null")
    texts = [part if isinstance(part, bytes) else str(part).encode() for part in parts]
    if len(texts) > 1:
        texts = [text.replace(b"\\", b"\\\\").replace(b":", b"\\:") for text in texts]
    return prefix.encode() + b":" + b":".join(texts)


def joined(texts: Sequence[Column]) -> Column:
    """Return columns of bytes as `key_of` joins them; null if one of them is."""
    if len(texts) == 1:
        return texts[0]
    escaped = [_replaced(_replaced(text, "\\"), ":") for text in texts]
    parts = [part for each in escaped for part in (F.lit(b":"), each)]
    return F.concat(*parts[1:])


def split(joined: bytes, count: int) -> list[bytes]:
    r"""Return the parts of a key without its prefix.

    >>> split(b"a\\:b:7", 2)
    [b'a:b', b'7']
    """
    if count == 1:
        return [joined]
    parts = []
    for text, colon in _PART.findall(joined):
        parts.append(_ESCAPED.sub(rb"\1", text))
        if not colon:
            break
    return parts


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that would be nothing, or Penstock's own."""
    if not prefix or prefix.startswith(OWN) or prefix == OWN.removesuffix(":"):
        raise TargetError(
            f"the prefix of keys is {prefix!r}", hint=f"use a text that does not begin with {OWN!r}"
        )


def pattern(prefix: str) -> str:
    """Return the pattern of all keys below a prefix, as SCAN takes it.

    >>> pattern("what?")
    'what\\\\?:*'
    """
    return _SPECIAL.sub(r"\\\1", prefix) + ":*"


def _replaced(text: Column, sign: str) -> Column:
    """Put an escape before each of a sign; bytes are texts of Latin-1 meanwhile, which loses none."""
    latin = F.decode(text, "ISO-8859-1")
    return F.encode(F.replace(latin, F.lit(sign), F.lit("\\" + sign)), "ISO-8859-1")
