"""Hashes of keys, as runs of state are sorted by them."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.process.state.runs import LOWER


def row_hash(key: str, row: Sequence[str]) -> Column:
    """Return a hash of a row of a key: the key's is its upper half, so that rows of a key are neighbours."""
    upper = F.shiftleft(F.hash(key).cast("long"), 32)
    return upper.bitwiseOR(F.hash(*row).cast("long").bitwiseAND(F.lit(LOWER)))


def key_bucket(key: str, buckets: int) -> Column:
    """Return in which bucket all rows of a key are."""
    return F.pmod(F.hash(key), F.lit(buckets))
