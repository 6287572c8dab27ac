"""What two versions of a flow differ in: rows compared by key, counted, with examples."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.log.ledger import Offsets
from penstock.process.columns.naming import quoted
from penstock.process.wire.messages import EXACT_JSON

SHOWN = 5
_LIVE, _SHADOW = "live", "shadow"
_KIND = {"different": "different", "only_live": "only in live", "only_shadow": "only in shadow"}
_HALF = (1 << 32) - 1


@dataclass(frozen=True)
class Example:
    """A key that two versions differ in, and a row of each that has one; `kind` says how."""

    kind: str
    key: str
    live: str | None
    shadow: str | None


@dataclass(frozen=True)
class Difference:
    """How many keys two versions of a flow have alike, differently, or alone.

    `windows` is how many windows are concerned, where there are windows. Both were compared `at` one position
    of the log; if that could not be had, `apart` is how many events lie between them.
    """

    flow: str
    key: tuple[str, ...]
    same: int
    different: int
    only_live: int
    only_shadow: int
    windows: int | None = None
    examples: tuple[Example, ...] = ()
    at: Offsets = field(default_factory=dict)
    apart: int = 0

    @property
    def differences(self) -> int:
        return self.different + self.only_live + self.only_shadow

    @property
    def exact(self) -> bool:
        """Whether both sides have worked on the same events."""
        return self.apart == 0


def difference(
    flow: str,
    live: DataFrame,
    shadow: DataFrame,
    key: Sequence[str],
    *,
    window: str | None = None,
    shown: int = SHOWN,
) -> Difference:
    """Compare two DataFrames of the same columns by a key, or row by row if there is none.

    Where a key has several rows, all of them have to be alike, in whatever order. Only counts and examples
    come to the driver.
    """
    judged = _judged(live, shadow, list(key)).persist()
    try:
        counted = judged.groupBy("kind").agg(F.count("*").alias("keys")).collect()
        counts = {row["kind"]: int(row["keys"]) for row in counted}
        wrong = judged.where(F.col("kind") != "same")
        windows = wrong.select("window").distinct().count() if window in key else None
        order = [F.col("kind"), F.col("key")]
        rows = wrong.orderBy(*order).limit(shown).collect()
    finally:
        judged.unpersist()
    examples = tuple(Example(_KIND[row["kind"]], row["key"], row["live"], row["shadow"]) for row in rows)
    same, different, ours, theirs = (counts.get(kind, 0) for kind in ("same", *_KIND))
    return Difference(flow, tuple(key), same, different, ours, theirs, windows, examples)


def _judged(live: DataFrame, shadow: DataFrame, key: list[str]) -> DataFrame:
    """One row for each key: how it compares, and a row of each side as a text."""
    names = sorted(live.columns)
    whole = F.to_json(F.struct(*map(quoted, names)), EXACT_JSON)
    by = F.to_json(F.struct(*map(quoted, key)), EXACT_JSON) if key else whole
    window = F.col("start").cast("string") if "start" in key else F.lit(None).cast("string")
    sides = [
        side.select(by.alias("key"), window.alias("window"), whole.alias("row"), F.lit(name).alias("side"))
        for side, name in ((live, _LIVE), (shadow, _SHADOW))
    ]
    counted = (
        sides[0]
        .unionByName(sides[1])
        .groupBy("key")
        .agg(
            F.first("window").alias("window"),
            *(each for name in (_LIVE, _SHADOW) for each in _side(name)),
        )
    )
    ours, theirs = F.col("live_rows"), F.col("shadow_rows")
    kind = (
        F.when(theirs == 0, "only_live")
        .when(ours == 0, "only_shadow")
        .when((ours == theirs) & (F.col("live_digest") == F.col("shadow_digest")), "same")
        .otherwise("different")
    )
    return counted.select("key", "window", kind.alias("kind"), _LIVE, _SHADOW)


def _side(name: str) -> list[Column]:
    """The number of a side's rows, a sum over their hashes that no order changes, and one of them."""
    own = F.col("side") == name
    hashed = F.xxhash64("row")
    halves = (
        F.sum(F.when(own, hashed.bitwiseAND(_HALF))),
        F.sum(F.when(own, F.shiftrightunsigned(hashed, 32))),
    )
    return [
        F.count_if(own).alias(f"{name}_rows"),
        F.struct(*halves).alias(f"{name}_digest"),
        F.max(F.when(own, F.col("row"))).alias(name),
    ]
