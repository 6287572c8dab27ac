"""A flow tried on history: what it would have emitted over the log, judged by labels; nothing is written."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.log.archive.tiers import Tiers
from penstock.pipeline.flow import Flow
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner, Span
from penstock.pipeline.runner import chosen, registry_of
from penstock.process.columns.naming import quoted
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.wire.messages import EXACT_JSON
from penstock.settings import Settings

_SHOWN = 5


@dataclass(frozen=True)
class Trial:
    """What a flow would have done: `hits` are its results, `found` how many different keys they have.

    Of `labelled` keys that should have been found, `right` were; `missed` and `false` are examples of keys
    that were not found, and of those that should not have been.
    """

    flow: str
    read: int
    hits: int
    found: int
    labelled: int | None = None
    right: int | None = None
    missed: tuple[str, ...] = ()
    false: tuple[str, ...] = ()

    @property
    def precision(self) -> float | None:
        """Which part of what was found is right; None without labels, or if nothing was found."""
        return None if self.right is None or not self.found else self.right / self.found

    @property
    def recall(self) -> float | None:
        """Which part of what is labelled was found; None without labels."""
        return None if self.right is None or not self.labelled else self.right / self.labelled


def try_on_history(
    pipeline: Pipeline,
    flow: str,
    settings: Settings,
    spark: SparkSession,
    *,
    on: Sequence[str] = (),
    labels: DataFrame | None = None,
) -> Trial:
    """Run a flow's function over the whole log, its archive included, and count what comes of it.

    `labels` has a row for each key, in the columns `on`, that should be found; results have these columns,
    too. The flow need not run, and if it does, it is not touched.
    """
    described = chosen(pipeline, [flow])[0]
    registry = registry_of([described], settings)
    try:
        results = Planner(spark, settings, registry).results(described, Span(as_table=True))
        return _tried(described, _read(described, settings), _own(results), list(on), labels)
    finally:
        if registry is not None:
            registry.close()


def _tried(flow: Flow, read: int, results: DataFrame, on: list[str], labels: DataFrame | None) -> Trial:
    _refuse_missing(flow, results, on, "gives")
    key = _key(on) if on else F.lit("")
    if labels is None:
        row = results.agg(F.count("*"), F.countDistinct(key)).first() or (0, 0)
        return Trial(flow.name, read, int(row[0]), int(row[1]) if on else int(row[0]))
    if not on:
        raise FlowError("labels are given, and no column that they are about", hint="name it: on=, --on")
    _refuse_missing(flow, labels, on, "is labelled by")
    sides = results.select(key.alias("key"), F.lit(1).alias("hit"), F.lit(0).alias("label")).unionAll(
        labels.select(key.alias("key"), F.lit(0), F.lit(1))
    )
    judged = sides.groupBy("key").agg(F.sum("hit").alias("hits"), F.max("label").alias("label")).persist()
    try:
        return _judged(flow, read, judged)
    finally:
        judged.unpersist()


def _judged(flow: Flow, read: int, judged: DataFrame) -> Trial:
    hit, label = F.col("hits") > 0, F.col("label") == 1
    counts = judged.agg(
        F.coalesce(F.sum("hits"), F.lit(0)), F.count_if(hit), F.count_if(label), F.count_if(hit & label)
    ).first() or (0, 0, 0, 0)
    missed, false = (_examples(judged.where(each)) for each in (~hit & label, hit & ~label))
    hits, found, labelled, right = (int(each) for each in counts)
    return Trial(flow.name, read, hits, found, labelled, right, missed, false)


def _own(results: DataFrame) -> DataFrame:
    """The results that are no side outputs."""
    return results.where(F.col(SIDE_OUTPUT).isNull()) if SIDE_OUTPUT in results.columns else results


def _key(on: list[str]) -> Column:
    return F.to_json(F.struct(*map(quoted, on)), EXACT_JSON)


def _examples(keys: DataFrame) -> tuple[str, ...]:
    return tuple(row[0] for row in keys.select("key").orderBy("key").limit(_SHOWN).collect())


def _refuse_missing(flow: Flow, rows: DataFrame, on: list[str], verb: str) -> None:
    if missing := sorted({*on} - {*rows.columns}):
        raise FlowError(
            f"flow {flow.name!r} {verb} no column {missing[0]!r}", hint=f"there are {', '.join(rows.columns)}"
        )


def _read(flow: Flow, settings: Settings) -> int:
    ranges = [Tiers(settings).committed_ranges(topic.name) for topic in flow.reads.values()]
    return sum(end - first for each in ranges for first, end in each.values())
