"""A job: a flow as it is run, under an identity that is unique and stays."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import StructType

from penstock.identity import Identity
from penstock.log import Table, Topic
from penstock.log.ledger import Offsets
from penstock.pipeline.flow import Flow
from penstock.pipeline.pipeline import Pipeline
from penstock.settings import Settings
from penstock.targets import Sink, SinkOptions
from penstock.targets import sink as sinks
from penstock.targets.target import Guarantee


@dataclass(frozen=True)
class Cut:
    """Where a topic's results change hands: a position in the log, and the watermark there in ms."""

    position: Offsets
    watermark: int = 0

    @property
    def mark(self) -> str:
        """What stands beside the checkpoint of a generation that has worked up to it."""
        return json.dumps({"position": self.position, "watermark": self.watermark}, sort_keys=True)


@dataclass(frozen=True)
class Job:
    """A flow among those of its pipeline: `siblings` are all of them, and the topics that they write."""

    flow: Flow
    identity: Identity
    siblings: Mapping[str, frozenset[str]] = field(default_factory=dict)
    rebuilds: bool = False  # a generation that is not at work yet
    end: Offsets | None = None  # how far a replay reads; to the present end unless it is given
    cut: Cut | None = None  # up to where it writes nothing, as another generation has
    stops_at: Offsets | None = None  # where a stream ends, to the offset

    @property
    def label(self) -> str:
        """The name that it goes by everywhere."""
        return self.identity.label

    @property
    def query(self) -> str:
        """What Spark knows it by; one that is not at work yet may run beside the one that is."""
        return self.identity.sink if self.rebuilds else self.label

    @property
    def topics(self) -> tuple[Topic[Any], ...]:
        """What it reads as streams."""
        return tuple(self.flow.reads.values())

    @property
    def loads(self) -> bool:
        """Whether it reads what its tables hold before its first event."""
        return len({isinstance(topic, Table) for topic in self.topics}) == 2

    def may_be_written_by(self, label: str, topic: str) -> bool:
        """Whether a flow may write a topic: of the own pipeline it is known, of others it is not."""
        return not self.identity.is_beside(Identity(label)) or topic in self.siblings.get(label, ())

    def sink(self, settings: Settings, schema: StructType, lanes: int) -> Sink:
        """Return what takes its rows in."""
        flow = self.flow
        guarantee = _of_sink(flow.effective_guarantee)
        options = SinkOptions(settings, self.identity.sink, flow.lanes or lanes, guarantee, flow.timeout)
        return flow.target.sink(schema, options)


def flow_job(pipeline: Pipeline, flow: Flow, namespace: str = "") -> Job:
    """Return the job of a flow."""
    siblings = {
        Identity.of(namespace, pipeline.name, name).label: _written(each)
        for name, each in pipeline.flows.items()
    }
    return Job(flow, Identity.of(namespace, pipeline.name, flow.name), siblings)


def _written(flow: Flow) -> frozenset[str]:
    """The topics that a flow writes to."""
    return frozenset(topic.name for topic in flow.target.topics)


def _of_sink(guarantee: Guarantee) -> sinks.Guarantee:
    """A sink knows nothing of real time."""
    return "exactly-once" if guarantee == "effectively-once" else guarantee
