"""The snapshotter: adds up in one batch what a projection's records come to by now, and keeps it."""

from pyspark.sql import DataFrame, Observation

from penstock.errors import DataLossError, FlowError
from penstock.log import Broker
from penstock.log.archive.tiers import Tiers
from penstock.log.ledger import Batch
from penstock.pipeline.job import Job
from penstock.pipeline.malformed import Judge
from penstock.pipeline.plan import Planner, Span
from penstock.pipeline.projection import Projection
from penstock.pipeline.snapshots import Positions, Snapshot, SnapshotStore


class Snapshotter:
    """Takes snapshots of a flow that is a projection."""

    def __init__(self, job: Job, planner: Planner, judge: Judge) -> None:
        self._job, self._planner, self._judge = job, planner, judge
        home = job.identity.home(planner.settings.flows)
        self._store = SnapshotStore(planner.spark, f"{home}/snapshots")

    def take(self) -> Snapshot:
        """Keep what it comes to now: the snapshot before, and the records behind it, or all of them."""
        projection, (argument,), (topic,) = self._projection, self._job.flow.reads, self._job.topics
        broker = Broker(self._planner.settings)
        ends, id = broker.committed_end(topic.name), broker.topic_ids([topic.name])[topic.name]
        before = self._store.newest(projection.tag, id, ends)
        self._refuse_lost(topic.name, before)
        malformed = Observation()

        def records(since: Positions | None) -> DataFrame:
            span = Span(None if since is None else {topic.name: since}, {topic.name: ends}, as_table=True)
            return self._planner.records(self._job.flow, span, malformed)

        def settle() -> None:
            """Bring malformed records to the dead letters before the snapshot stands for them."""
            start = {} if before is None else {topic.name: before.positions}
            batch = Batch("snapshot", 0, start, {topic.name: ends}, {topic.name: id})
            self._judge.settle(self._job, batch, {}, {argument: malformed.get["malformed"]})

        state = self._store.state_behind(before, projection, records)
        return self._store.put(state, projection.tag, id, ends, settle)

    def _refuse_lost(self, topic: str, before: Snapshot | None) -> None:
        """Refuse to add up what is not there any more."""
        if not Tiers(self._planner.settings).is_whole(topic, before.positions if before else None):
            where = "the last snapshot" if before else "its beginning"
            raise DataLossError(
                f"events of {topic!r} behind {where} were deleted: flow {self._job.label!r} would lack what "
                "came of them",
                hint="an archive of the topic would have kept them; `penstock rebuild … --partial` does "
                "without them",
            )

    @property
    def _projection(self) -> Projection:
        found = self._job.flow.projection
        if found is None:
            raise FlowError(
                f"flow {self._job.label!r} is no view: its state is in Spark's checkpoint only",
                hint='make a flow of the view itself: pipeline.flow(name="…", reads={"records": …}, …)(view)',
            )
        return found
