"""Seeding: what a projection's stream begins with is added up in one batch, from the newest snapshot on.

A stream of Spark's reads Kafka only, and keeps its state as it goes. So a topic whose beginning is archived,
or a rebuild of millions of records, is read as a table; what it comes to is planted beside the checkpoint.
"""

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql.types import StructType

from penstock.log import Broker, Topic
from penstock.log.archive.tiers import Tiers
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.job import Job
from penstock.pipeline.malformed import Judge
from penstock.pipeline.plan import Planner
from penstock.pipeline.seed import Seed
from penstock.pipeline.snapshots import Snapshot
from penstock.pipeline.snapshotter import Snapshotter
from penstock.points import reach

_WRITTEN, _STATE = "seed.json", "seed"  # beside the checkpoint


class Seeding:
    """Makes the seed of a flow that is a projection, once, before its stream begins."""

    def __init__(self, job: Job, planner: Planner, judge: Judge, checkpoint: Checkpoint) -> None:
        self._job, self._planner, self._judge, self._checkpoint = job, planner, judge, checkpoint
        self._broker = Broker(planner.settings)

    @property
    def seed(self) -> Seed | None:
        """What the stream of this checkpoint begins with, or began."""
        text = self._checkpoint.read(_WRITTEN)
        if text is None:
            return None
        found = json.loads(text)
        positions = {int(number): at for number, at in found["positions"].items()}
        schema = StructType.fromJson(found["schema"])
        return Seed(f"{self._checkpoint.path}/{_STATE}", schema, {found["topic"]: positions})

    def see_to(self, report: Callable[[str], None]) -> bool:
        """Make a seed where one is wanted; return whether the flow has one."""
        if self._checkpoint.last_planned() is None and self._is_wanted and not self._is_within_reach:
            snapshot = Snapshotter(self._job, self._planner, self._judge).take()
            report(f"begins with the state of {sum(snapshot.positions.values()):,} offsets")
            self._plant(snapshot)
        return self.seed is not None

    @property
    def _is_wanted(self) -> bool:
        flow = self._job.flow
        if flow.projection is None or flow.mode != "stream":
            return False
        chosen = any(name.startswith("starting") for name in flow.options)
        archived = Tiers(self._planner.settings).history(self._topic.name) is not None
        return not chosen and (self._job.rebuilds or archived)

    @property
    def _is_within_reach(self) -> bool:
        """Whether there is a seed, and Kafka still has the records behind it."""
        found = self.seed
        if found is None:
            return False
        firsts = self._broker.offsets(self._topic.name)
        start = found.start[self._topic.name]
        return all(start.get(number, 0) >= first for number, (first, _) in firsts.items())

    def _plant(self, snapshot: Snapshot) -> None:
        """Put a copy beside the checkpoint, as snapshots are removed when they are old."""
        self._checkpoint.copy_from(snapshot.state, _STATE)
        schema = self._planner.spark.read.parquet(snapshot.state).schema
        written = {
            "topic": self._topic.name,
            "positions": dict(snapshot.positions),
            "schema": schema.jsonValue(),
        }
        self._checkpoint.write(_WRITTEN, json.dumps(written))
        reach("flow.seeded", self._job.label)

    @property
    def _topic(self) -> Topic[Any]:
        (topic,) = self._job.topics
        return topic
