"""Lengths of time, written as people write them: "10 minutes", "1.5 hours" or a timedelta."""

import re
from datetime import timedelta

from penstock.errors import ConfigurationError

MICROSECOND = timedelta(microseconds=1)
_SECONDS = {
    "millisecond": 0.001,
    "ms": 0.001,
    "second": 1,
    "s": 1,
    "minute": 60,
    "min": 60,
    "hour": 3600,
    "h": 3600,
    "day": 86400,
    "d": 86400,
    "week": 604800,
}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def duration(value: "str | timedelta", *, zero: bool = False) -> timedelta:
    """Return `value` as a timedelta, or raise if it isn't positive; with `zero` it may be none at all.

    >>> duration("10 minutes")
    datetime.timedelta(seconds=600)
    >>> duration("0 seconds", zero=True)
    datetime.timedelta(0)
    """
    result = value if isinstance(value, timedelta) else _read(value)
    if result < timedelta(0) or (not result and not zero):
        wrong = "negative" if zero else "not positive"
        raise ConfigurationError(f"duration {value!r} is {wrong}", hint='write for example "10 minutes"')
    return result


def _read(text: str) -> timedelta:
    found = _WRITTEN.fullmatch(text)
    word = found[2].lower() if found else ""
    seconds = _SECONDS.get(word) or _SECONDS.get(word.removesuffix("s"))
    if found is None or seconds is None:
        units = ", ".join(_SECONDS)
        raise ConfigurationError(f"{text!r} is not a duration", hint=f'write "10 minutes"; units: {units}')
    return timedelta(seconds=float(found[1]) * seconds)
