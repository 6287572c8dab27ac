"""Verification: a flow's results, recomputed from the log and compared with what its target holds."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.log import Broker, Topic
from penstock.log.ledger import Offsets
from penstock.log.ranges import Range, Ranges
from penstock.log.topic import DEAD_LETTERS
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.conservation import Conservation, conservation, windows_of
from penstock.pipeline.flow import Flow
from penstock.pipeline.job import Job, as_written, flow_job
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner, Span
from penstock.process.source import kafka_rows, typed
from penstock.process.target import MADE_BY
from penstock.process.windows.kept import END
from penstock.process.windows.native import FINAL
from penstock.registry import Registry
from penstock.settings import Settings
from penstock.sinks.compared import Compared
from penstock.sinks.dead_letters import dead_letter_label
from penstock.sinks.postgres import PostgresTable
from penstock.sinks.postgres.comparison import compare_table

_SHOWN = 5
_AT_ONCE = 4  # flows; Spark plans one while it runs another
_CONTENT = ("topic", "key", "value")


@dataclass(frozen=True)
class Account:
    """What a flow has read and what came of it; `examples` are results in which the two sides differ."""

    flow: str
    read: int
    expected: int
    found: int
    missing: int
    repeated: int
    unexpected: int
    examples: tuple[str, ...] = ()
    repeats_allowed: bool = False
    windows: Conservation | None = None

    @property
    def sound(self) -> bool:
        """Whether the target holds just what the log says, each once or, where that is the promise, more.

        Of windows with a late policy, the sum of rows has to be right; their results are not compared.
        """
        if self.windows is not None:
            return self.windows.exact
        return not (self.missing or self.unexpected or (self.repeated and not self.repeats_allowed))


def verify(pipeline: Pipeline, settings: Settings, spark: SparkSession) -> list[Account]:
    """Recompute every flow over what it has read, and compare; the flow may run meanwhile.

    Results that depend on where batches were cut can't be recomputed: they show as missing and unexpected.
    """
    registered = any(topic.format != "json" for topic in pipeline.topics.values())
    registry = Registry(settings) if registered else None
    try:
        planner = Planner(spark, settings, registry)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            dead = pool.submit(_dead_account, pipeline, planner)
            flows = pool.map(lambda flow: _flow_account(pipeline, flow, planner), pipeline.flows.values())
            return [*flows, dead.result()]
    finally:
        if registry is not None:
            registry.close()


def _flow_account(pipeline: Pipeline, flow: Flow, planner: Planner) -> Account:
    job = flow_job(pipeline, flow.in_mode("replay"))
    position, now = _position(planner, pipeline, job), _ends(planner, job.topics)
    read = _count(planner, job.topics, position)
    results = planner.results(flow.in_mode("replay"), Span(end=position))
    if not isinstance(flow.writes, PostgresTable) and windows_of(results) is not None:
        return _windows_account(pipeline, flow, planner, results, read)
    due = as_written(planner, flow, job.label, _due(results, _checkpoint(planner, pipeline, flow.name)))
    if isinstance(flow.writes, PostgresTable):
        compared = compare_table(flow.writes, due, planner.settings, job.label)
        return Account(flow.name, read, **compared._asdict())
    names = [flow.writes.name, *(topic.name for topic in flow.outlets)]
    found = _written(planner, names, job.label)
    compared = _compare(due, job.rows(planner, Span(end=now)), found)
    once = flow.promise in ("exactly-once", "at-most-once")
    return Account(flow.name, read, repeats_allowed=not once, **compared._asdict())


def _due(results: DataFrame, checkpoint: Checkpoint) -> DataFrame:
    """Leave out windows that are not over: Spark tells them when the watermark has passed their end."""
    if END not in results.columns or not results.schema[END].metadata.get(FINAL):
        return results
    return results.where(F.col(END) <= F.lit(checkpoint.watermark()))


def _windows_account(
    pipeline: Pipeline, flow: Flow, planner: Planner, results: DataFrame, read: int
) -> Account:
    assert isinstance(flow.writes, Topic)  # noqa: S101
    label = f"{pipeline.name}.{flow.name}"
    written = typed(_written(planner, [flow.writes.name], label), flow.writes, planner.known(flow.writes))
    outlets = _written(planner, [topic.name for topic in flow.outlets], label) if flow.outlets else None
    rows = conservation(results, written, outlets, _checkpoint(planner, pipeline, flow.name).path)
    there = rows.told + rows.waiting + rows.sent + rows.dropped
    lost, extra = max(0, rows.taken - there), max(0, there - rows.taken)
    return Account(flow.name, read, rows.taken, there, lost, 0, extra, windows=rows)


def _dead_account(pipeline: Pipeline, planner: Planner) -> Account:
    """The malformed records of what flows have read; those of tables that they look up may be there, too."""
    topics = list(pipeline.topics.values())
    now = {topic.name: Broker(planner.settings).committed_ranges(topic.name) for topic in topics}
    read = _read_ranges(pipeline, planner, now)
    label = dead_letter_label(pipeline.name)
    found = _written(planner, [topic.name + DEAD_LETTERS for topic in topics], label)
    due, possible = (planner.malformed(label, topics, ranges, {}) for ranges in (read, now))
    count = sum(end - first for ranges in read.values() for first, end in ranges.values())
    return Account("dead-letters", count, **_compare(due, possible, found)._asdict())


def _read_ranges(
    pipeline: Pipeline, planner: Planner, now: Mapping[str, Ranges]
) -> dict[str, dict[int, Range]]:
    """What at least one flow has read of each topic."""
    found = {name: {part: (low, low) for part, (low, _) in ranges.items()} for name, ranges in now.items()}
    for flow in pipeline.flows.values():
        position = _checkpoint(planner, pipeline, flow.name).position()
        for topic in flow.reads.values():
            for part, end in position.get(topic.name, {}).items():
                low, reached = found[topic.name][part]
                found[topic.name][part] = (low, max(reached, end))
    return found


def _compare(due: DataFrame, possible: DataFrame, found: DataFrame) -> Compared:
    """Count what must be there, what may be there already, and what is there, content by content."""
    sides = due.select(*_CONTENT, _side("due"))
    sides = sides.unionByName(possible.select(*_CONTENT, _side("possible")))
    sides = sides.unionByName(found.select(*_CONTENT, _side("found")))
    counted = sides.groupBy(*_CONTENT).agg(
        *(F.count_if(F.col("side") == name).alias(name) for name in ("due", "possible", "found"))
    )
    judged = counted.select(
        *_CONTENT,
        "due",
        "found",
        F.greatest(F.col("due") - F.col("found"), F.lit(0)).alias("missing"),
        F.when(F.col("possible") == 0, F.col("found")).otherwise(0).alias("unexpected"),
        F.when(F.col("possible") > 0, F.greatest(F.col("found") - F.col("possible"), F.lit(0)))
        .otherwise(0)
        .alias("repeated"),
    ).persist()
    try:
        sums = judged.agg(*(F.sum(name) for name in ("due", "found", "missing", "repeated", "unexpected")))
        return Compared.of([int(each or 0) for each in sums.first() or ()], _examples(judged))
    finally:
        judged.unpersist()


def _examples(judged: DataFrame) -> tuple[str, ...]:
    wrong = judged.where("missing > 0 or repeated > 0 or unexpected > 0")
    kind = F.expr(
        "case when missing > 0 then 'missing' when repeated > 0 then 'repeated' else 'unexpected' end"
    )
    text = F.concat_ws(" ", kind, "topic", F.col("key").cast("string"), F.col("value").cast("string"))
    return tuple(row[0] for row in wrong.select(F.substring(text, 1, 200)).limit(_SHOWN).collect())


def _side(name: str) -> Column:
    return F.lit(name).alias("side")


def _written(planner: Planner, topics: list[str], label: str) -> DataFrame:
    """What stands in topics and was written by a flow; others may write there too."""
    rows = kafka_rows(planner.spark, planner.settings, topics, streaming=False)
    by_flow = F.exists(
        F.col("headers"),
        lambda header: (
            (header["key"] == MADE_BY)
            & (F.split_part(header["value"].cast("string"), F.lit(" "), F.lit(1)) == label)
        ),
    )
    return rows.where(by_flow)


def _count(planner: Planner, topics: Iterable[Topic[Any]], end: Offsets) -> int:
    names = [topic.name for topic in topics]
    return kafka_rows(planner.spark, planner.settings, names, streaming=False, end=end).count()


def _position(planner: Planner, pipeline: Pipeline, job: Job) -> Offsets:
    """Where a flow stands, after its last finished batch; a topic it has not read yet counts as empty."""
    found = _checkpoint(planner, pipeline, job.name).position()
    return {
        name: {number: found.get(name, {}).get(number, first) for number, first in firsts.items()}
        for name, firsts in _firsts(planner, job.topics).items()
    }


def _checkpoint(planner: Planner, pipeline: Pipeline, flow: str) -> Checkpoint:
    return Checkpoint(planner.spark, f"{planner.settings.flows}/{pipeline.name}/{flow}/checkpoint")


def _firsts(planner: Planner, topics: Iterable[Topic[Any]]) -> dict[str, dict[int, int]]:
    broker = Broker(planner.settings)
    return {
        topic.name: {number: low for number, (low, _) in broker.offsets(topic.name).items()}
        for topic in topics
    }


def _ends(planner: Planner, topics: Iterable[Topic[Any]]) -> Offsets:
    broker = Broker(planner.settings)
    return {topic.name: broker.committed_end(topic.name) for topic in topics}
