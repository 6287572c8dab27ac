"""Who wrote a record, as flows see it: each writer has an order of its own in a partition."""

import re
from typing import Any

from penstock.identity import LABEL, VERSION
from penstock.process.wire.messages import MADE_BY

_LONGEST = 600  # bytes of a header that are looked at: anybody may write one
_VERSION = re.compile(f"@{VERSION}")
_OURS = re.compile(rf"^{LABEL}(@{VERSION})?( [A-Za-z0-9._-]{{1,249}}/[0-9]{{1,9}}(/[0-9]{{1,19}})?)?$")


def writer_of(headers: list[tuple[str, Any]] | None) -> str:
    """Return the flow and the partition of its origin that made a record; nothing of anybody else's.

    >>> writer_of([("penstock.made-by", b"shop.bill@2 sales/3/17")]), writer_of([("trace", b"1")])
    ('shop.bill sales/3', '')

    As `penstock.pipeline.observed.writer` finds it in Spark.
    """
    key, value = headers[0] if headers else ("", None)
    text = (value or b"")[:_LONGEST].decode("ascii", "replace")
    if key != MADE_BY or not _OURS.match(text):
        return ""
    return "/".join(_VERSION.sub("", text).split("/")[:2])
