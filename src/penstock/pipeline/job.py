"""A job: a flow as it is run, under a label that is unique and stays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from penstock.identity import Identity
from penstock.log import Table, Topic
from penstock.pipeline.flow import Flow, Output
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner, Span
from penstock.settings import Settings
from penstock.targets import Sink, SinkOptions, Target
from penstock.targets import sink as sinks
from penstock.targets.target import Guarantee, Mode

Rows = Callable[[Planner, Span], DataFrame]
MakeSink = Callable[[Settings, DataFrame, int], Sink]


@dataclass(frozen=True)
class Job:
    """Rows that are made of topics, and the sink that takes them in; `label` is unique and stays."""

    label: str
    name: str
    mode: Mode
    guarantee: Guarantee
    trigger_interval: str
    output: Output
    reads: Mapping[str, Topic[Any]]
    rows: Rows
    bounded_rows: Rows  # the same of a span with an end, as a table
    sink: MakeSink
    target: Target
    version: str = "1"
    native: bool = False  # whether Spark writes it by itself, without a sink of ours
    loads: bool = False  # whether it reads what its tables hold before its first event
    looks_up: Mapping[str, Table[Any]] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    siblings: Mapping[str, frozenset[str]] = field(default_factory=dict)  # all flows, and what they write

    @property
    def topics(self) -> tuple[Topic[Any], ...]:
        """What it reads as streams."""
        return tuple(self.reads.values())

    @property
    def identity(self) -> Identity:
        """All names that are made of its label."""
        return Identity(self.label)

    def may_be_written_by(self, label: str, topic: str) -> bool:
        """Whether a flow may write a topic: of the own pipeline it is known, of others it is not."""
        return not self.identity.is_beside(Identity(label)) or topic in self.siblings.get(label, ())


def dead_letter_maker(pipeline: Pipeline, namespace: str = "") -> Identity:
    """Return who makes the dead letters of a pipeline."""
    return Identity.of(namespace, pipeline.name, "dead-letters")


def flow_job(pipeline: Pipeline, flow: Flow, namespace: str = "") -> Job:
    """Return the job of a flow."""
    label = Identity.of(namespace, pipeline.name, flow.name).label

    def rows(planner: Planner, span: Span) -> DataFrame:
        return planner.rows(flow, label, planner.results(flow, span))

    def bounded_rows(planner: Planner, span: Span) -> DataFrame:
        return planner.rows(flow, label, planner.results(flow.in_mode("replay"), span))

    def sink(settings: Settings, frame: DataFrame, lanes: int) -> Sink:
        guarantee = _of_sink(flow.effective_guarantee)
        options = SinkOptions(settings, label, flow.lanes or lanes, guarantee, flow.timeout)
        return flow.target.sink(frame.schema, options)

    return Job(
        label, flow.name, flow.mode, flow.effective_guarantee, flow.trigger_interval,
        flow.output, flow.reads, rows, bounded_rows, sink, flow.target, flow.version, flow.is_native,
        loads=len({isinstance(topic, Table) for topic in flow.reads.values()}) == 2,
        looks_up=flow.looks_up, options=flow.options,
        siblings={
            Identity.of(namespace, pipeline.name, each.name).label: _written(each)
            for each in pipeline.flows.values()
        },
    )  # fmt: skip


def _written(flow: Flow) -> frozenset[str]:
    """The topics that a flow writes to."""
    return frozenset(topic.name for topic in flow.target.topics)


def _of_sink(guarantee: Guarantee) -> sinks.Guarantee:
    """A sink knows nothing of real time."""
    return "exactly-once" if guarantee == "effectively-once" else guarantee
