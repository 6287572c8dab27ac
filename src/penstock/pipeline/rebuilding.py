"""Rebuilding: a flow's target made again from the log, beside the one at work, and put in its place."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import FlowError, TargetError
from penstock.identity import Identity
from penstock.log import Broker, Groups
from penstock.log.archive.tiers import Tiers
from penstock.log.ledger import Offsets
from penstock.pipeline.attempt import replay_end
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.flow import Flow
from penstock.pipeline.flow_run import Reporter, warned
from penstock.pipeline.flow_status import forget_status
from penstock.pipeline.generation import Generation, Generations
from penstock.pipeline.job import Job, flow_job
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner
from penstock.pipeline.runner import Runner, chosen, registry_of
from penstock.pipeline.state import is_stateful
from penstock.pipeline.whole_log import IN_KAFKA, refuse_lost
from penstock.points import reach
from penstock.settings import Settings
from penstock.targets.target import Target

_LANES = 2
_TICK = 0.2
IsStopped = Callable[[], bool]


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild has done: how far the log was read, and whether the flow's target has that now."""

    flow: str
    end: Offsets
    swapped: bool


@dataclass(frozen=True)
class Wanted:
    """What a rebuild is asked for, as `rebuild` has it."""

    until: datetime | None = None
    partial: bool = False
    discard: bool = False
    may_swap: Callable[[], bool] = lambda: True


def rebuild(
    pipeline: Pipeline,
    flow: str,
    settings: Settings,
    spark: SparkSession,
    *,
    until: datetime | None = None,
    partial: bool = False,
    discard: bool = False,
    may_swap: Callable[[], bool] = lambda: True,
    is_stopped: IsStopped = lambda: False,
    report: Reporter = warned,
) -> Rebuilt:
    """Make a flow's target again from the log alone, beside the one at work, then put it in its place.

    The flow may run meanwhile; `may_swap` is asked when it is to be replaced. `until` leaves out what the log
    took in at that moment and later: the flow then stands there. Interrupted, the next call goes on; with
    `discard` it begins a new one. With `partial`, events that are not in the log any more are done without.
    """
    described = chosen(pipeline, [flow])[0]
    work = _Rebuild(pipeline, described, settings, spark, report, is_stopped)
    return work.run(Wanted(until, partial, discard, may_swap))


class _Rebuild:
    def __init__(
        self,
        pipeline: Pipeline,
        flow: Flow,
        settings: Settings,
        spark: SparkSession,
        report: Reporter,
        is_stopped: IsStopped,
    ) -> None:
        self._pipeline, self._flow, self._settings, self._spark = pipeline, flow, settings, spark
        self._report, self._is_stopped = report, is_stopped
        identity = Identity.of(settings.namespace, pipeline.name, flow.name)
        self._generations = Generations(spark, settings, identity)
        self._label = identity.label

    def run(self, wanted: Wanted) -> Rebuilt:
        self._refuse_unfit(wanted)
        known = self._generations.read_for("rebuild")
        if not known.swapping:
            known = self._build(known, wanted)
        if known.built is None or self._is_stopped():
            return Rebuilt(self._flow.name, known.built or {}, swapped=False)
        if not known.swapping and not wanted.may_swap():
            return Rebuilt(self._flow.name, known.built, swapped=False)
        self._swap(known)
        return Rebuilt(self._flow.name, known.built, swapped=True)

    def _refuse_unfit(self, wanted: Wanted) -> None:
        if self._target.topics:
            raise FlowError(
                f"flow {self._label!r} writes topics, and a rebuild would emit all of its events again",
                hint="rebuild flows that write tables, indexes and the like; a new topic takes a new flow",
            )
        others = [each for each in self._pipeline.flows.values() if each.name != self._flow.name]
        sharing = next((each.name for each in others if each.target == self._target), None)
        if sharing is not None:
            raise FlowError(
                f"flows {self._flow.name!r} and {sharing!r} write the same target: a rebuild of one would "
                "remove the rows of the other",
                hint="give each flow a target of its own",
            )
        if wanted.until is None:
            return
        if self._flow.looks_up:
            raise FlowError(
                f"flow {self._label!r} looks tables up, and those have the rows of today",
                hint="leave --until out, or join the tables as streams",
            )
        if self._keeps_state:
            raise FlowError(
                f"flow {self._label!r} keeps state: it can be rebuilt up to the present only",
                hint="leave --until out",
            )

    def _build(self, known: Generation, wanted: Wanted) -> Generation:
        until = wanted.until.astimezone(UTC).isoformat() if wanted.until is not None else ""
        if known.shadow and not wanted.discard:
            raise FlowError(
                f"flow {self._label!r} has a shadow",
                hint=f"swap it in, or give it up: `penstock shadow {self._pipeline.name} {self._flow.name} "
                "--discard`",
            )
        if wanted.discard and known.building is not None:
            known = self._noted(known, known.without_rebuild())
        self._generations.refuse_discarding(known)
        if known.building is not None and (known.until, known.made_by) != (until, self._made_by):
            what = "with other code or columns" if known.until == until else f"up to {known.until or 'now'}"
            raise FlowError(
                f"a rebuild of {self._label!r} {what} is under way",
                hint="finish that one with the same command as then, or add --discard to begin a new one",
            )
        refuse_lost(self._flow, self._settings, wanted.until, partial=wanted.partial)
        known = self._noted(known, known.begun(until, self._made_by))
        if known.built is None:
            built = self._built(known, wanted)
            if not self._is_stopped():
                known = self._noted(known, replace(known, built=built))
        return known

    def _noted(self, before: Generation, after: Generation) -> Generation:
        if before != after:
            self._generations.write(after, before)
        return after

    def _built(self, known: Generation, wanted: Wanted) -> Offsets:
        """Run the flow over the log: without state in one batch, with state as a stream that ends.

        The stream of a projection begins with what its newest snapshot and the records behind it come to.
        """
        job = self._job(known)
        if self._keeps_state:
            flow = job.flow.in_mode("stream")
            flow = replace(flow, options={**IN_KAFKA, **flow.options}) if wanted.partial else flow
            self._run(replace(job, flow=flow))
            return {}  # where it stands is in its checkpoint
        end = _ends(self._flow, self._settings, wanted.until)
        job = replace(job, flow=job.flow.in_mode("replay"), end=end)
        self._run(job)
        folder = job.identity.folder(self._settings.flows)
        return replay_end(Checkpoint(self._spark, f"{folder}/replay")) or {}

    def _run(self, job: Job) -> None:
        runner = Runner(
            self._pipeline, self._settings, jobs=[job], once=True, spark=self._spark, report=self._report
        )
        with runner:
            while not self._is_stopped() and not runner.wait(_TICK):
                pass

    def _job(self, known: Generation) -> Job:
        """The job that writes the new generation, beside the target at work."""
        beside = self._target.beside(f"g{known.building}")
        flow = replace(self._flow, writes=beside)
        job = flow_job(self._pipeline, flow, self._settings.namespace)
        return replace(job, identity=self._generations.of(known.building or 0), rebuilds=True)

    @property
    def _target(self) -> Target:
        return self._flow.target

    @cached_property
    def _rows(self) -> DataFrame:
        """The flow's results as a stream, for what their plan says."""
        flow, registry = self._flow.in_mode("stream"), registry_of([self._flow], self._settings)
        try:
            return Planner(self._spark, self._settings, registry).rows(flow, self._label)
        finally:
            if registry is not None:
                registry.close()

    @property
    def _keeps_state(self) -> bool:
        return is_stateful(self._rows)

    @property
    def _made_by(self) -> str:
        """What a rebuild that is taken up again has to have in common with itself."""
        projection = self._flow.projection
        tag = "" if projection is None else f" {projection.tag}"
        return f"{self._flow.version} {self._rows.schema.simpleString()}{tag}"

    def _swap(self, known: Generation) -> None:
        """Shut the present writer out, put the new contents in place, and let the flow go on behind them."""
        if not known.swapping:
            self._shut_out(known.current)
            known = self._noted(known, replace(known, swapping=True))
        self._shut_out(known.current)  # again: it may have been started in between
        reach("rebuild.swapping", self._label)
        self._publish_position(known)  # whoever waits for the view waits for the rebuilt one from here on
        try:
            self._target.swap(self._target.beside(f"g{known.building}"), self._settings)
        except TargetError:  # it has changed nothing
            self._noted(known, replace(known, swapping=False))
            raise
        reach("rebuild.swapped", self._label)
        self._publish_position(known)  # again: the former writer may have published its last one meanwhile
        self._noted(known, known.swapped())
        if known.former is not None and known.former != known.building:
            self._forget(known.former)
            if known.kept:  # by the swap of a shadow
                self._target.beside(f"g{known.former}").remove(self._settings)
        forget_status(self._settings, self._generations.of(known.current))

    def _publish_position(self, known: Generation) -> None:
        identity = self._generations.of(known.building or 0)
        checkpoint = Checkpoint(self._spark, f"{identity.folder(self._settings.flows)}/checkpoint")
        Groups(self._settings).place(identity.group, known.built or checkpoint.position())

    def _shut_out(self, generation: int) -> None:
        """A flow that runs all the same must not write into what was rebuilt."""
        if self._target.swap_shuts_out:
            return
        identity, flow = self._generations.of(generation), self._flow.in_mode("stream")
        job = replace(flow_job(self._pipeline, flow, self._settings.namespace), identity=identity)
        sink = job.sink(self._settings, self._rows.schema, _LANES)
        sink.take_over()
        sink.close()

    def _forget(self, generation: int) -> None:
        """Remove checkpoints; those of the one that was at work stay, for whoever may still run with them."""
        folder = self._generations.of(generation).folder(self._settings.flows)
        for kind in ("checkpoint", "replay"):
            Checkpoint(self._spark, f"{folder}/{kind}").delete()


def _ends(flow: Flow, settings: Settings, until: datetime | None) -> Offsets:
    broker, names = Broker(settings), [topic.name for topic in flow.reads.values()]
    if until is None:
        return {name: broker.committed_end(name) for name in names}
    return {name: Tiers(settings).offsets_at(name, until) for name in names}
