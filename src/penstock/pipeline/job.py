"""A job: what is run as one query. A flow is one, and so is the watch for what can't be decoded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.durations import duration
from penstock.log import Table, Topic
from penstock.pipeline.flow import Flow, Guarantee, Mode, Output
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner, Span
from penstock.process.target import made_by, with_id
from penstock.settings import Settings
from penstock.sinks.kafka import KafkaSink
from penstock.sinks.postgres import PostgresSink, PostgresTable
from penstock.sinks.sink import Sink

DEAD_LETTERS = "dead-letters"
_OFTEN, _SELDOM = 5.0, 30.0  # seconds between two looks for what can't be decoded
Rows = Callable[[Planner, Span], DataFrame]
MakeSink = Callable[[Settings, DataFrame, int], Sink]


@dataclass(frozen=True)
class Job:
    """Rows that are made of topics, and the sink that takes them in; `label` is unique and stays."""

    label: str
    name: str
    mode: Mode
    promise: Guarantee
    pause: str
    output: Output
    topics: tuple[Topic[Any], ...]
    rows: Rows
    sink: MakeSink
    version: str = "1"
    native: bool = (
        False  # whether Spark's own Kafka sink writes it: at least once, and all there is in real time
    )
    loads: bool = False  # whether it reads what its tables hold before its first event

    @property
    def group(self) -> str:
        """The consumer group under which its positions are published."""
        return f"penstock.{self.label}"


def flow_job(pipeline: Pipeline, flow: Flow) -> Job:
    """Return the job of a flow."""
    label = f"{pipeline.name}.{flow.name}"

    def rows(planner: Planner, span: Span) -> DataFrame:
        return as_written(planner, flow, label, planner.results(flow, span))

    def sink(settings: Settings, frame: DataFrame, lanes: int) -> Sink:
        lanes = flow.lanes or lanes
        if isinstance(flow.writes, PostgresTable):
            return PostgresSink(
                flow.writes, frame.schema, settings, label, lanes=lanes, guarantee=_sinks(flow.promise)
            )
        return KafkaSink(settings, label, lanes=lanes, guarantee=_sinks(flow.promise), timeout=flow.timeout)

    least = flow.promise == "at-least-once" and isinstance(flow.writes, Topic)
    return Job(
        label, flow.name, flow.mode, flow.promise, flow.pause, flow.output,
        tuple(flow.reads.values()), rows, sink, flow.version, least or flow.mode == "realtime",
        loads=len({isinstance(topic, Table) for topic in flow.reads.values()}) == 2,
    )  # fmt: skip


def as_written(planner: Planner, flow: Flow, label: str, results: DataFrame) -> DataFrame:
    """Return a flow's results as its sink takes them in."""
    if isinstance(flow.writes, PostgresTable):
        return with_id(results, label)
    return planner.messages(flow, label, results)


def dead_letter_job(pipeline: Pipeline, mode: Mode) -> Job:
    """Return the job that brings what can't be decoded in a pipeline's topics to their dead letters."""
    topics = tuple(pipeline.topics.values())
    label = f"{pipeline.name}.{DEAD_LETTERS}"

    def rows(planner: Planner, span: Span) -> DataFrame:
        dead = planner.dead_letters(topics, streaming=mode != "replay", end=span.end)
        told = F.array(made_by(label))
        return dead.withColumn("headers", F.concat("headers", told))

    def sink(settings: Settings, frame: DataFrame, lanes: int) -> Sink:  # noqa: ARG001
        return KafkaSink(settings, label, lanes=1)

    settled: Mode = "replay" if mode == "replay" else "stream"
    return Job(label, DEAD_LETTERS, settled, "exactly-once", _watch(pipeline), "append", topics, rows, sink)


def _watch(pipeline: Pipeline) -> str:
    """As often as the flows save their state, within limits: a look costs what a batch costs."""
    saved = [duration(flow.pause).total_seconds() for flow in pipeline.flows.values()]
    return f"{1000 * min(max(_OFTEN, min(saved, default=0)), _SELDOM):.0f} milliseconds"


def _sinks(promise: Guarantee) -> Any:
    """A sink knows nothing of real time."""
    return "exactly-once" if promise == "effectively-once" else promise
