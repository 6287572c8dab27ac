"""Sketches: answers that are a little wrong by a declared error, in a state that stays small.

They are Spark's own aggregates, so they run in every mode and in native windows.
"""

from math import ceil, log2
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from penstock.errors import FlowError


def distinct(column: str, *, error: float = 0.02) -> Column:
    """About how many different values (HyperLogLog); `error` is the relative standard error.

    views.groupBy("page").agg(sketches.distinct("user", error=0.01).alias("users"))
    """
    size = ceil(2 * log2(1.04 / _checked(error)))
    return F.hll_sketch_estimate(F.hll_sketch_agg(column, min(max(size, 4), 21)))


def quantile(column: str, share: float, *, error: float = 0.01) -> Column:
    """About the value below which a share of the values is (KLL); `error` is in the share, with 99 %."""
    size = ceil((2.296 / _checked(error)) ** (1 / 0.9021))
    sketch = F.kll_sketch_agg_double(F.col(column).cast("double"), F.lit(min(max(size, 8), 65535)))
    return F.kll_sketch_get_quantile_double(sketch, F.lit(float(share)))


def frequent(column: str, count: int, *, tracked: int | None = None) -> Column:
    """About the most frequent values with their counts, as an array of (item, count).

    Of n rows, each count is at most n · 3.5 / `tracked` too high; by default 100 times `count` are tracked.
    """
    if count < 1:
        raise FlowError(f"the {count} most frequent values, expected at least 1")
    return F.expr(f"approx_top_k(`{column}`, {count}, {tracked or 100 * count})")


def counts(column: str, *, error: float = 0.001, confidence: float = 0.99, seed: int = 1) -> Column:
    """A count-min sketch of how often each value occurs; `estimate` asks it.

    Of n rows a count is never too low, and with `confidence` at most n · `error` too high.
    """
    return F.count_min_sketch(column, F.lit(_checked(error)), F.lit(confidence), F.lit(seed))


def estimate(spark: SparkSession, sketch: bytes, value: Any) -> int:
    """About how often a value occurs, by a sketch of `counts`."""
    reader = spark._jvm.org.apache.spark.util.sketch.CountMinSketch  # type: ignore[union-attr]
    return int(reader.readFrom(sketch).estimateCount(value))


def _checked(error: float) -> float:
    if not 0 < error < 0.5:
        raise FlowError(f"an error of {error}, expected a share between 0 and 0.5")
    return error
