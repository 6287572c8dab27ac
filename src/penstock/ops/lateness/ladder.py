"""Delays that people choose: the steps between which a delay is looked for."""

from bisect import bisect_left
from datetime import timedelta

from penstock.durations import MICROSECOND

_SECONDS = (
    0, 0.1, 0.2, 0.5, 1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1200, 1800, 2700, 3600,
    5400, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800,
)  # fmt: skip
LADDER = tuple(timedelta(seconds=each) for each in _SECONDS)
_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def rounded_up(length: timedelta) -> timedelta:
    """Return the first step that is at least as long; beyond the last, whole days.

    >>> rounded_up(timedelta(seconds=12)), rounded_up(timedelta(days=9.5))
    (datetime.timedelta(seconds=15), datetime.timedelta(days=10))
    """
    place = bisect_left(LADDER, length)
    return LADDER[place] if place < len(LADDER) else timedelta(days=-(-length // timedelta(days=1)))


def spelled(length: timedelta) -> str:
    """Return a length as a watermark takes it.

    >>> spelled(timedelta(seconds=90)), spelled(timedelta(hours=1)), spelled(timedelta(milliseconds=200))
    ('90 seconds', '1 hour', '200 ms')
    >>> spelled(timedelta(0))
    '0 seconds'
    """
    milliseconds = -(-length // timedelta(milliseconds=1))
    seconds, rest = divmod(milliseconds, 1000)
    if rest:
        return f"{milliseconds} ms"
    for size, word in _UNITS:
        if seconds and seconds % size == 0:
            amount = seconds // size
            return f"{amount} {word}{'' if amount == 1 else 's'}"
    return "0 seconds"


def about(length: timedelta) -> str:
    """Return a length for people.

    >>> about(timedelta(seconds=44.978)), about(timedelta(microseconds=1200))
    ('45.0 s', '1 ms')
    """
    seconds = length.total_seconds()
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms"


def microseconds(length: timedelta) -> int:
    return length // MICROSECOND
