"""Where reading begins, as a client writes it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.gateway.refusal import Refusal
from penstock.log import Position, from_beginning, from_end, from_time

_OFFSETS = re.compile(r"[0-9]{1,9}:[0-9]{1,18}(,[0-9]{1,9}:[0-9]{1,18})*")
_MOST_PARTITIONS = 10_000
BEGINNING = ("from", "partition", "offset")  # the words of a query that say where reading begins
_HINT = "from=beginning, from=end, from=2026-01-01T00:00:00Z, from=0:17,1:5, or partition=0&offset=17"


@dataclass(frozen=True)
class Start:
    """A place to begin: offsets by partition, or a position that the broker is asked for.

    >>> Start.of({"from": "0:17,1:5"}).offsets
    {0: 17, 1: 5}
    >>> Start.of({"partition": "1", "offset": "3"}).offsets
    {1: 3}

    With `partition`, that one alone is read.
    """

    offsets: Mapping[int, int] | None = None
    position: Position | None = None
    partition: int | None = None

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> "Start":
        """Return where a query begins: at the end, if it does not say."""
        partition, offset, begin = asked.get("partition"), asked.get("offset"), asked.get("from")
        number = None if partition is None else whole("partition", partition)
        if offset is not None:
            if number is None or begin is not None:
                raise wrong("an offset needs its partition, and no other beginning")
            return cls(offsets={number: whole("offset", offset)}, partition=number)
        if begin is not None and _OFFSETS.fullmatch(begin):
            found = dict(_pair(each) for each in begin.split(","))
            if number is not None or len(found) > _MOST_PARTITIONS:
                raise wrong("offsets name their partitions themselves")
            return cls(offsets=found)
        return cls(position=_position(begin or "end"), partition=number)


def spelled(offsets: Mapping[int, int]) -> str:
    """Write offsets as a client gives them back.

    >>> spelled({1: 5, 0: 17})
    '0:17,1:5'
    """
    return ",".join(f"{partition}:{offset}" for partition, offset in sorted(offsets.items()))


def whole(name: str, text: str, most: int = 2**63 - 1) -> int:
    """Return the whole number of a query."""
    if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= most):
        raise wrong(f"{name} is {text[:50]!r}, expected a whole number up to {most}")
    return int(text)


def refuse_unknown(asked: Mapping[str, str], *known: str) -> None:
    """Refuse a query with a word that means nothing here: a mistyped one would be passed over in silence."""
    unknown = sorted({*asked} - {*known})
    if unknown:
        raise wrong(f"{unknown[0][:50]!r} is not asked for here", f"known are {', '.join(known) or 'none'}")


def wrong(message: str, hint: str = _HINT) -> Refusal:
    """Return the refusal of a query."""
    return Refusal(400, "gateway.query", message, hint=hint)


def moment(name: str, text: str) -> datetime:
    """Return the time of a query; without a zone it is UTC."""
    try:
        found = datetime.fromisoformat(text)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        hint = f"write a time as in RFC 3339: {name}=2026-01-01T00:00:00Z"
        raise wrong(f"{name} is {text[:50]!r}, expected a time", hint) from None


def _position(text: str) -> Position:
    if text in ("beginning", "end"):
        return from_beginning() if text == "beginning" else from_end()
    if not text[:1].isdigit() or not text.isascii():
        raise wrong(f"from is {text[:50]!r}")
    return from_time(moment("from", text))


def _pair(text: str) -> tuple[int, int]:
    partition, _, offset = text.partition(":")
    return int(partition), int(offset)
