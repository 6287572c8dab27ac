"""Two versions of a flow: the generation at work, and the one in its shadow."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.local.lock import held
from penstock.log import Broker, Table
from penstock.log.ledger import Batch, Entry, Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.flow import Flow
from penstock.pipeline.flow_run import Reporter, warned
from penstock.pipeline.generation import Generation, Generations
from penstock.pipeline.job import Cut, Job, flow_job
from penstock.pipeline.pinning import has_passed
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner
from penstock.pipeline.read_topics import ReadTopics
from penstock.pipeline.runner import Runner, registry_of
from penstock.pipeline.settled import is_of_spark
from penstock.settings import Settings
from penstock.targets.sink import Sink
from penstock.targets.target import Target

_LANES = 2


@dataclass(frozen=True)
class Standing:
    """Where a generation stands: its position in the log, and its watermark in ms."""

    position: Offsets
    watermark: int = 0


@dataclass(frozen=True)
class Versions:
    """The generations of a flow by their numbers, as the code of today describes it."""

    pipeline: Pipeline
    flow: Flow
    settings: Settings
    spark: SparkSession
    report: Reporter = warned

    @property
    def label(self) -> str:
        return Identity.of(self.settings.namespace, self.pipeline.name, self.flow.name).label

    @property
    def command(self) -> str:
        """The words that commands about the flow take."""
        return f"{self.pipeline.name} {self.flow.name}"

    @cached_property
    def generations(self) -> Generations:
        identity = Identity.of(self.settings.namespace, self.pipeline.name, self.flow.name)
        return Generations(self.spark, self.settings, identity)

    @property
    def target(self) -> Target:
        return self.flow.target

    @property
    def writes_topics(self) -> bool:
        return bool(self.target.topics)

    def beside(self, number: int) -> Target:
        """The target of a generation that is not at work."""
        return self.target.beside(f"g{number}")

    def live_job(self, number: int) -> Job:
        """The job that writes the target at work, as a stream with a ledger."""
        job = flow_job(self.pipeline, self._streamed(self.flow), self.settings.namespace)
        return replace(job, identity=self.generations.of(number))

    def shadow_job(self, number: int) -> Job:
        """The job that writes a target beside the one at work."""
        flow = replace(self._streamed(self.flow), writes=self.beside(number), side_outputs=())
        job = flow_job(self.pipeline, flow, self.settings.namespace)
        return replace(job, identity=self.generations.of(number), rebuilds=True)

    def checkpoint(self, number: int) -> Checkpoint:
        folder = self.generations.of(number).folder(self.settings.flows)
        return Checkpoint(self.spark, f"{folder}/checkpoint")

    def sink(self, job: Job) -> Sink:
        """What takes the rows of a job in."""
        return job.sink(self.settings, self.rows.schema, _LANES)

    def topic_ids(self, number: int, known: Generation) -> Mapping[str, str]:
        """Return the ids of the topics that a generation has read; refuse one of topics made again since."""
        job = self.live_job(number) if number == known.current else self.shadow_job(number)
        topics = ReadTopics(job, self.settings, self.checkpoint(number))
        topics.open()
        return topics.ids

    @cached_property
    def rows(self) -> DataFrame:
        """The flow's results as a stream, for what their plan says."""
        registry = registry_of([self.flow], self.settings)
        try:
            planner = Planner(self.spark, self.settings, registry)
            return planner.rows(self._streamed(self.flow), self.label)
        finally:
            if registry is not None:
                registry.close()

    @property
    def made_by(self) -> str:
        """What a shadow that is taken up again has to have in common with itself."""
        return f"{self.flow.version} {self.rows.schema.simpleString()}"

    def forget(self, number: int) -> None:
        """Remove the checkpoint of a generation that nobody needs any more, and topics that are its own."""
        identity, broker = self.generations.of(number), Broker(self.settings)
        own = [Identity(identity.sink).ledger, identity.clock] if number else []
        for name in broker.topics(own) if own else ():
            broker.delete(name)
        self.checkpoint(number).delete()

    def alone(self) -> AbstractContextManager[None]:
        """Wait until nobody else of this data folder replaces the flow, and keep others from it."""
        lock = self.settings.data / "replacing" / f"{self.label}.lock"
        return held(lock, lambda what: self.report(self.flow.name, what))

    def run(self, job: Job) -> None:
        """Run a job until it has worked on what there is for it."""
        runner = Runner(
            self.pipeline, self.settings, jobs=[job], once=True, spark=self.spark, report=self.report
        )
        with runner:
            runner.wait()

    def standing(self, number: int, entries: Iterable[Entry], known: Generation) -> Standing:
        """Return where a generation stands by its ledger; refuse one whose results are out in part."""
        silent = self._silent_at(number, known)
        if silent is not None:
            return silent
        batches, checkpoint = [entry.batch for entry in entries], self.checkpoint(number)
        if any(batch != batches[0] for batch in batches):
            raise FlowError(
                f"flow {self.label!r} was ended in the midst of a batch: a part of its results is written",
                hint=f"let it complete the batch: `penstock run {self.pipeline.name} --flow {self.flow.name} "
                "--once` with the code that it ran with",
            )
        batch = batches[0] if batches else None
        self._refuse_without_ledger(checkpoint, batch)
        return self._standing(number, checkpoint, batch, known)

    def seen(self, number: int, known: Generation) -> Standing:
        """Return where a generation stands by its checkpoint; it may run."""
        found = self._silent_at(number, known)
        return found or self._standing(number, self.checkpoint(number), None, known)

    def _silent_at(self, number: int, known: Generation) -> Standing | None:
        """Return where the one at work stands while it has emitted nothing: where it was swapped in."""
        cut = Cut(known.cut, known.cut_watermark)
        if number != known.current or not cut.position or has_passed(self.checkpoint(number), cut):
            return None
        return Standing(cut.position, cut.watermark)

    def _standing(
        self, number: int, checkpoint: Checkpoint, batch: Batch | None, known: Generation
    ) -> Standing:
        position = self.of_reads(checkpoint.position() if batch is None else batch.end)
        watermark = _milliseconds(checkpoint, batch)
        if number != known.current:
            return Standing(position, watermark)
        before = furthest(known.cut, known.end)
        return Standing(furthest(position, before), max(watermark, known.cut_watermark))

    def _refuse_without_ledger(self, checkpoint: Checkpoint, batch: Batch | None) -> None:
        """Refuse a generation that has finished batches, or begun one, which its ledger does not have."""
        if is_of_spark(checkpoint):
            raise self.unknown_to_the_offset()
        committed = checkpoint.last_committed()
        if committed is None:
            return
        if batch is None or batch.checkpoint != checkpoint.id or batch.number < committed:
            raise self.unknown_to_the_offset()

    def unknown_to_the_offset(self) -> FlowError:
        """The error for a flow that Spark writes by itself, or has written."""
        return FlowError(
            f"flow {self.label!r} is or was written by Spark itself (in real time, or at least once): "
            "without a ledger, which of its results are out is not known to the offset",
            hint="give the new version a flow and a topic of its own, and let readers change over",
        )

    def refuse_additional(self, standing: Standing) -> None:
        """Refuse a new version that reads a topic which the one at work does not: nobody emits its past.

        The rows of a table beside events are no results of their own.
        """
        reads = self.flow.reads.values()
        beside_events = not all(isinstance(topic, Table) for topic in reads)
        emitting = {topic.name for topic in reads if not (beside_events and isinstance(topic, Table))}
        added = sorted(emitting - {*standing.position}) if standing.position else []
        if added:
            raise FlowError(
                f"the shadow of {self.label!r} reads {added[0]!r}, which the version at work has not read: "
                "what came of its events so far would be emitted by none",
                hint=f"let a flow of its own read {added[0]!r} and write the same topic; or give the new "
                "version a flow and a topic of its own",
            )

    def of_reads(self, position: Offsets) -> Offsets:
        """A position without the topics of clocks, which each generation has for itself."""
        names = {topic.name for topic in self.flow.reads.values()}
        return {topic: each for topic, each in position.items() if topic in names}

    @staticmethod
    def _streamed(flow: Flow) -> Flow:
        """The flow as a stream that has a ledger, whatever it is when it runs by itself."""
        streamed = flow.in_mode("stream")
        return replace(streamed, guarantee=None) if streamed.is_native else streamed


def furthest(one: Offsets, other: Offsets) -> dict[str, dict[int, int]]:
    """Return the further of two positions, partition by partition.

    >>> furthest({"a": {0: 5, 1: 2}}, {"a": {0: 3, 1: 4}, "b": {0: 1}})
    {'a': {0: 5, 1: 4}, 'b': {0: 1}}
    """
    found: dict[str, dict[int, int]] = {}
    for topic in sorted({*one, *other}):
        ours, theirs = one.get(topic, {}), other.get(topic, {})
        found[topic] = {part: max(ours.get(part, 0), theirs.get(part, 0)) for part in _parts(ours, theirs)}
    return found


def nearest(one: Offsets, other: Offsets) -> dict[str, dict[int, int]]:
    """Return the nearer of two positions, partition by partition; what one of them lacks is at 0.

    >>> nearest({"a": {0: 5, 1: 2}}, {"a": {0: 3, 1: 4}, "b": {0: 1}})
    {'a': {0: 3, 1: 2}, 'b': {0: 0}}
    """
    found: dict[str, dict[int, int]] = {}
    for topic in sorted({*one, *other}):
        ours, theirs = one.get(topic, {}), other.get(topic, {})
        found[topic] = {part: min(ours.get(part, 0), theirs.get(part, 0)) for part in _parts(ours, theirs)}
    return found


def distance(one: Offsets, other: Offsets) -> int:
    """Return how many offsets lie between two positions, in whichever direction."""
    far, near = furthest(one, other), nearest(one, other)
    return sum(far[topic][part] - near[topic][part] for topic in far for part in far[topic])


def _parts(one: Mapping[int, int], other: Mapping[int, int]) -> list[int]:
    return sorted({*one, *other})


def _milliseconds(checkpoint: Checkpoint, batch: Batch | None) -> int:
    number = batch.number if batch is not None and batch.checkpoint == checkpoint.id else None
    return int(checkpoint.watermark(number).timestamp() * 1000)
