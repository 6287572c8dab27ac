"""How figures move over time: what rises is known from what goes up and down."""

from collections.abc import Sequence
from itertools import pairwise


def rises(values: Sequence[float], parts: int = 2) -> bool:
    """Say whether every value of a part is above all of the part before it.

    >>> rises([1, 2, 5, 7]), rises([1, 6, 5, 7]), rises([3, 3, 3, 3])
    (True, False, False)
    """
    if len(values) < 2 * parts:
        return False
    cuts = [len(values) * part // parts for part in range(parts + 1)]
    pieces = [values[first:end] for first, end in pairwise(cuts)]
    return all(max(before) < min(after) for before, after in pairwise(pieces))


def median(values: Sequence[float]) -> float:
    """Return the value in the middle; 0 if there are none.

    >>> median([3, 1, 2]), median([])
    (2, 0.0)
    """
    return sorted(values)[len(values) // 2] if values else 0.0


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of all is; 0 if there are none.

    >>> quantile([*range(100)], 0.99), quantile([], 0.5)
    (99, 0.0)
    """
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0
