"""State as runs: frames of keys that never change, sorted by the keys' hashes, the newest last.

A batch adds one run with the keys that it has touched, so that it costs what these cost. When a run has
become longer than half of the one before, they are merged: few runs stay, and a row is written again only a
few times.

Where a key has several rows, the upper half of a hash is that of the key, the lower half that of the row: all
rows of a key are neighbours, and each is found by itself.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

HASH, GONE = "_hash", "_gone"
LOWER = 2**32 - 1  # the lower half of a hash
Places = np.ndarray[tuple[int], np.dtype[np.int64]]
Flags = np.ndarray[tuple[int], np.dtype[np.bool_]]


def find(runs: Sequence[pl.DataFrame], keys: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return the newest rows of keys, without those that are gone, in no order."""
    found, left = [], keys
    for run in reversed(runs):
        places = _places(run, left, by)
        found.append(run[places[places >= 0]])
        left = left.filter(pl.Series(places < 0))
    return pl.concat(found).filter(~pl.col(GONE))


def find_all(
    runs: Sequence[pl.DataFrame], keys: pl.DataFrame, by: Sequence[str], each: Sequence[str]
) -> pl.DataFrame:
    """Return the newest version of all rows of keys, without those that are gone; `each` identifies a row."""
    found = pl.concat([run[_neighbours(run, keys, by)] for run in reversed(runs)])
    newest = found.unique([*by, *each], keep="first", maintain_order=True)
    return newest.filter(~pl.col(GONE))


def merged(runs: Sequence[pl.DataFrame], by: Sequence[str], *, whole: bool) -> pl.DataFrame:
    """Return runs as one, the newest rows of their keys; if they are the whole state, without those gone."""
    kept = [runs[-1]]
    for place, run in enumerate(runs[:-1]):
        newer = pl.concat([each.select(HASH, *by) for each in runs[place + 1 :]])
        overwritten = _places(run, newer, by)
        stays = np.ones(run.height, dtype=bool)
        stays[overwritten[overwritten >= 0]] = False
        kept.append(run.filter(pl.Series(stays)))
    rows = pl.concat(kept).sort(HASH)
    return rows.filter(~pl.col(GONE)) if whole else rows


def first_to_merge(lengths: Sequence[int], patience: float = 2) -> int:
    """Return from which run on all are to be merged: one is left that is long against all that follow it.

    >>> first_to_merge([1000, 400, 150, 40, 30])
    3
    """
    first, total = len(lengths) - 1, lengths[-1]
    while first and lengths[first - 1] < patience * total:
        first -= 1
        total += lengths[first]
    return first


def _places(run: pl.DataFrame, keys: pl.DataFrame, by: Sequence[str]) -> Places:
    """Return in which rows of a run keys are, or -1; different keys of the same hash are neighbours."""
    hashes, wanted = run[HASH].to_numpy(), keys[HASH].to_numpy()
    found: Places = np.full(len(wanted), -1, dtype=np.int64)
    there = np.searchsorted(hashes, wanted)
    open_ = np.arange(len(wanted))
    while open_.size:
        inside = there[open_] < len(hashes)
        open_ = open_[inside]
        open_ = open_[hashes[there[open_]] == wanted[open_]]
        same = _same(run[there[open_]], keys[open_], by)
        found[open_[same]] = there[open_[same]]
        open_ = open_[~same]
        there[open_] += 1
    return found


def _neighbours(run: pl.DataFrame, keys: pl.DataFrame, by: Sequence[str]) -> Places:
    """Return which rows of a run are of keys, whatever the lower halves of their hashes are."""
    hashes, first = run[HASH].to_numpy(), keys[HASH].to_numpy() & ~LOWER
    start = np.searchsorted(hashes, first)
    count = np.searchsorted(hashes, first | LOWER, side="right") - start
    asked = np.repeat(np.arange(len(first)), count)
    places = np.arange(len(asked)) + np.repeat(start - np.cumsum(count) + count, count)
    same = _same(run[places], keys[asked], by)
    found: Places = places[same]
    return found


def _same(some: pl.DataFrame, others: pl.DataFrame, by: Sequence[str]) -> Flags:
    same = np.ones(some.height, dtype=bool)
    for name in by:
        same &= some[name].eq_missing(others[name]).to_numpy()
    return same
