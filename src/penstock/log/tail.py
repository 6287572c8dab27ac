"""Following a topic for a person: each message decoded as well as it can be."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from penstock.documents import presentable
from penstock.errors import DataError
from penstock.log.cursor import Cursor
from penstock.log.message import Received
from penstock.log.positions import from_beginning, from_end, from_time
from penstock.schemas import Codec
from penstock.settings import Settings

Line = dict[str, Any]
_PAUSE = 1.0  # seconds


def tail(
    name: str,
    settings: Settings,
    *,
    codec: Codec[Any] | None = None,
    plain: Callable[[bytes], Any] = lambda _: None,
    since: datetime | None = None,
    beginning: bool = False,
    limit: int | None = None,
    waiting: Callable[[int], None] = lambda _: None,
) -> Iterator[Line]:
    """Yield a topic's messages as JSON values; `codec` decodes them, if it is known.

    Otherwise `plain` does, or returns None for what it can't decode. `waiting` is called with the number of
    messages so far, once: when all that is there was read, and nothing has come for a second.
    """
    start = from_beginning() if beginning else from_time(_utc(since)) if since else from_end()
    with Cursor(name, settings, kafka={"fetch.wait.max.ms": 500}, archived=True) as cursor:
        cursor.start(start)
        for message in islice(_followed(cursor, waiting), limit):
            yield described(message, codec, plain)


def _followed(cursor: Cursor, waiting: Callable[[int], None]) -> Iterator[Received]:
    ends, seen, heard_at = cursor.ends(), 0, time.monotonic()
    while time.monotonic() - heard_at < _PAUSE or not _is_at(ends, cursor.position):
        if messages := cursor.read():
            yield from messages
            seen, heard_at = seen + len(messages), time.monotonic()
    waiting(seen)
    yield from cursor.follow()


def _is_at(ends: Mapping[int, int], position: Mapping[int, int]) -> bool:
    return all(position[partition] >= end for partition, end in ends.items())


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def described(message: Received, codec: Codec[Any] | None, plain: Callable[[bytes], Any]) -> Line:
    """Return what a message is, with its place: its event, or what is wrong with it and what it holds."""
    line = {
        "partition": message.partition(),
        "offset": message.offset(),
        "written": _time(message.timestamp()[1]),
        "key": _text(message.key()),
        **_content(message.value(), codec, plain),
        **_headers(message.headers() or ()),
    }
    return {name: presentable(each) for name, each in line.items()}


def _time(milliseconds: int) -> str | int:
    """The time of a record; a producer may have given any number, such as one of microseconds."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return milliseconds


def _headers(found: Iterable[tuple[str, bytes | None]]) -> Line:
    """Headers under one name, each with all its values: they are whatever a producer calls them."""
    values: dict[str, list[str | None]] = {}
    for name, value in found:
        values.setdefault(name, []).append(_text(value))
    shown = {name: each[0] if len(each) == 1 else each for name, each in values.items()}
    return {"headers": shown} if shown else {}


def _content(value: bytes | None, codec: Codec[Any] | None, plain: Callable[[bytes], Any]) -> Line:
    if value is None:
        return {"deleted": True}
    if codec is None:
        found = plain(value)
        return {"value": _guess(value) if found is None else found}
    try:
        return {"event": json.loads(msgspec.json.encode(codec.decode(value)))}
    except DataError as error:
        return {"error": error.message, "value": _guess(value)}
    except RecursionError:
        return {"error": "it is nested too deeply", "value": _text(value)}


def _guess(value: bytes) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return _text(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "backslashreplace")
