"""W3C trace context: a request's `traceparent` goes with its events, so that its trace goes through flows."""

import re
from collections.abc import Mapping

_PARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.{0,100})?")
_LONGEST_STATE = 512
Headers = tuple[tuple[str, str | bytes | None], ...]


def trace_headers(asked: Mapping[str, str]) -> Headers:
    """Return the headers that events of a request have; a trace that is malformed is left out.

    >>> trace_headers({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})[0][0]
    'traceparent'
    >>> trace_headers({"traceparent": "00-1-2-3"})
    ()
    """
    parent, state = asked.get("traceparent", ""), asked.get("tracestate", "")
    if not _PARENT.fullmatch(parent) or not parent.isascii():
        return ()
    found: Headers = (("traceparent", parent.encode()),)
    is_sound = state and len(state) <= _LONGEST_STATE and state.isascii() and state.isprintable()
    return (*found, ("tracestate", state.encode())) if is_sound else found
