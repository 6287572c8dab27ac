"""Where to cut a sequence of events, so that an outcome is that of those before the cut."""

from collections.abc import Callable

Judge = Callable[[int], int | None]
_STEPS = 8  # back from the end, one by one


def cut(length: int, judge: Judge) -> int | None:
    """Return how many events an outcome needs, none of them skipped; None if no cut was found.

    >>> cut(100, lambda count: (count > 37) - (count < 37))
    37

    `judge` says of a number of first events whether they are too few (-1), too many (1), right (0), or that
    nothing can be said (None): then some of the last ones are left out one by one.
    """
    found = judge(length)
    if found == 0:
        return length
    right = _bisected(length, judge) if found == 1 else None
    return right if right is not None else _stepped(length, judge)


def _bisected(length: int, judge: Judge) -> int | None:
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        found = judge(middle)
        if found == 0:
            return middle
        if found is None:
            return None
        low, high = (middle, high) if found < 0 else (low, middle)
    return None


def _stepped(length: int, judge: Judge) -> int | None:
    least = max(1, length - _STEPS)
    return next((count for count in range(length - 1, least - 1, -1) if judge(count) == 0), None)
