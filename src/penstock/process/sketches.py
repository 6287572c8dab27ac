"""Sketches: answers that are a little wrong by a declared error, in a state that stays small.

They are Spark's own aggregates, so they run in every mode and in native windows.
"""

from math import ceil, log2

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from penstock.errors import FlowError

_REGISTER_BITS, _QUANTILE_ITEMS, _TRACKED_ITEMS = 21, 65535, 1_000_000  # the most that Spark's sketches take


def distinct(column: str, *, error: float = 0.02) -> Column:
    """About how many different values (HyperLogLog); `error` is the relative standard error, from 0.072 %.

    views.groupBy("page").agg(sketches.distinct("user", error=0.01).alias("users"))
    """
    size = ceil(2 * log2(1.04 / _checked(error, 1.04 / 2 ** (_REGISTER_BITS / 2))))
    return F.hll_sketch_estimate(F.hll_sketch_agg(column, max(size, 4)))


def quantile(column: str, share: float, *, error: float = 0.01) -> Column:
    """About the value below which a share of the values is (KLL).

    `error` is in the share, with 99 %; from 0.011 %.
    """
    if not 0 <= share <= 1:
        raise FlowError(f"a quantile of {share}, expected a share from 0 to 1")
    size = ceil((2.296 / _checked(error, 2.296 / _QUANTILE_ITEMS**0.9021)) ** (1 / 0.9021))
    sketch = F.kll_sketch_agg_double(F.col(column).cast("double"), F.lit(max(size, 8)))
    return F.kll_sketch_get_quantile_double(sketch, F.lit(float(share)))


def frequent(column: str, count: int, *, tracked: int | None = None) -> Column:
    """About the most frequent values with their counts, as an array of (item, count).

    Of n rows, each count is at most n · 3.5 / `tracked` too high; by default 100 times `count` are tracked,
    and a million at most.
    """
    items = 100 * count if tracked is None else tracked
    if count < 1:
        raise FlowError(f"the {count} most frequent values, expected at least 1")
    if not count <= items <= _TRACKED_ITEMS:
        expected = f"expected from {count} to {_TRACKED_ITEMS:,}"
        raise FlowError(f"{items:,} tracked values for the {count} most frequent ones, {expected}")
    return F.call_function("approx_top_k", F.col(column), F.lit(count), F.lit(items))


def counts(column: str, *, error: float = 0.001, confidence: float = 0.99, seed: int = 1) -> Column:
    """A count-min sketch of how often each value occurs; `estimate` asks it.

    Of n rows a count is never too low, and with `confidence` at most n · `error` too high. It takes 16 bytes
    / `error` for each halving of what `confidence` leaves: from an error of 0.0001 %.
    """
    if not 0 < confidence < 1:
        raise FlowError(f"a confidence of {confidence}, expected a share between 0 and 1")
    return F.count_min_sketch(column, F.lit(_checked(error, 1e-6)), F.lit(confidence), F.lit(seed))


def estimate(spark: SparkSession, sketch: bytes, value: object) -> int:
    """About how often a value occurs, by a sketch of `counts`."""
    reader = spark._jvm.org.apache.spark.util.sketch.CountMinSketch  # type: ignore[union-attr]
    return int(reader.readFrom(sketch).estimateCount(value))


def _checked(error: float, least: float) -> float:
    """An error that a sketch can have; one that is smaller than the least would not be kept."""
    if not least <= error < 0.5:
        raise FlowError(
            f"an error of {error}, expected a share from {least:.2g} to 0.5", hint="for less, count exactly"
        )
    return error
