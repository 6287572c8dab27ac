"""Verification: a flow's results, recomputed from the log and compared with what its target holds."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log import Broker, Topic
from penstock.log.archive.tiers import Tiers
from penstock.log.ledger import Offsets
from penstock.log.ranges import OffsetRanges, Range, Ranges
from penstock.log.topic import DEAD_LETTERS
from penstock.pipeline.attempt import replay_end
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.conservation import Conservation, conservation, kept_results
from penstock.pipeline.flow import Flow
from penstock.pipeline.generation import Generations
from penstock.pipeline.job import Job, flow_job
from penstock.pipeline.malformed import between, count_in, counts, observed_in
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner, Span, named_topics
from penstock.process.spark.java import Java
from penstock.process.spark.java_errors import java_errors
from penstock.process.spark.logical import logical_plan, reads_everything
from penstock.process.time.horizon import up_to
from penstock.process.wire.decoding import unknown_schema
from penstock.registry import Registry
from penstock.settings import Settings
from penstock.targets import Inspection
from penstock.targets.comparison import compare_contents
from penstock.targets.kafka.target import MESSAGE, written_by

_DEAD = "dead-letters"
_AT_ONCE = 4  # flows; Spark plans one while it runs another
Reporter = Callable[[str, str], None]


@dataclass(frozen=True)
class Verification:
    """What a flow has read and what came of it; `examples` are results in which the two sides differ.

    `read` is how far it has come in its topics' offsets. `waiting` are results that may come yet: of events
    that wait for the watermark, or that were not read so far.
    """

    flow: str
    read: int
    expected: int
    found: int
    missing: int
    repeated: int
    unexpected: int
    examples: tuple[str, ...] = ()
    duplicates_allowed: bool = False
    windows: Conservation | None = None
    waiting: int = 0
    has_run: bool = True  # under the name that it has with these settings

    @property
    def ok(self) -> bool:
        """Whether the target holds just what the log says, each once or, where that is the guarantee, more.

        Of windows with a late policy, the sum of rows has to be right; their results are not compared.
        """
        if self.windows is not None:
            return self.windows.exact
        return not (self.missing or self.unexpected or (self.repeated and not self.duplicates_allowed))


def verify(
    pipeline: Pipeline, settings: Settings, spark: SparkSession, *, report: Reporter | None = None
) -> list[Verification]:
    """Recompute every flow over what it has read, and compare; the flow may run meanwhile.

    Results that depend on where batches were cut can't be recomputed: they show as missing and unexpected.
    `report` gets the name of each flow and what is being done with it.
    """
    topics = named_topics(pipeline.flows.values())
    registered = any(topic.is_registered for topic in topics.values())
    registry = Registry(settings) if registered else None
    try:
        check = _Verifier(
            pipeline, Planner(spark, settings, registry, counting=True), topics, report or _quiet
        )
        check.refuse_idle()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            flows = pool.map(check.flow, pipeline.flows.values())
            with java_errors(f"verify pipeline {pipeline.name!r}", settings):
                return [*flows, check.dead_letters()]
    finally:
        if registry is not None:
            registry.close()


def _quiet(flow: str, what: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class _Verifier:
    """The verification of a pipeline's flows, which share what is learned of schemas."""

    pipeline: Pipeline
    planner: Planner
    topics: dict[str, Topic[Any]]
    report: Reporter
    clean: dict[str, OffsetRanges] = field(default_factory=dict)  # where flows have met nothing malformed
    suspicious: set[str] = field(default_factory=set)  # topics in which a flow has

    def refuse_idle(self) -> None:
        """Refuse a pipeline of which no flow has run: nothing is due, and nothing would be missing."""
        if not any(self._has_run(flow) for flow in self.pipeline.flows.values()):
            settings = self.planner.settings
            raise FlowError(
                f"no flow of pipeline {self.pipeline.name!r} has run: there are no checkpoints in "
                f"{settings.flows} with the namespace {settings.namespace!r}",
                hint="run it, or verify it with the settings that it runs with",
            )

    def flow(self, flow: Flow) -> Verification:
        return self._learning(flow.name, lambda: self._flow(flow))

    def dead_letters(self) -> Verification:
        return self._learning(_DEAD, self._dead_letters)

    def _learning(self, name: str, make: Callable[[], Verification]) -> Verification:
        """Try again with every schema that turns up, as a flow does; one that nobody knows is no event's."""
        learned: set[tuple[str, int]] = set()
        while True:
            try:
                verification = make()
            except Exception as error:
                found = unknown_schema(str(error))
                if found is None or found in learned:
                    raise
                learned.add(found)
                self.planner.learn(self.topics[found[0]], found[1])
                self.report(name, f"schema {found[1]} of {found[0]} is new: planned again")
            else:
                self.report(name, "ok" if verification.ok else "differs")
                return verification

    def _flow(self, flow: Flow) -> Verification:
        job = flow_job(self.pipeline, flow, self.planner.settings.namespace)
        checkpoint = self._checkpoint(flow.name)
        firsts, number = _firsts(self.planner, job.topics), checkpoint.last_committed()
        found = checkpoint.position(number) or self._generations(flow.name).read().end
        position = _position(found, firsts)  # of one batch, though the flow may run
        read = _distance(firsts, position)
        self.report(flow.name, f"recomputes the results of {read:,} offsets")
        with up_to(checkpoint.watermark(number)) as horizon:
            results = self.planner.results(flow, Span(end=position, as_table=True))
        runs = list[DataFrame]()
        inspection = self._inspection(flow, job, runs.append)
        written = kept_results(results, flow.target, inspection)
        if written is not None and checkpoint.last_committed() is not None:
            return self._windows(flow, results, written, read)
        compared = flow.target.compare(self.planner.as_written(flow, job.label, results), inspection)
        observed = [observed_in(run) for run in runs]
        if reads_everything(logical_plan(results)):
            for each in observed:
                self._note_clean(job, firsts, position, each)
        waiting = compared.waiting or horizon.waiting(
            lambda name: count_in(observed[0], name) if observed else None
        )
        compared = compared._replace(waiting=waiting)
        return Verification(
            flow.name,
            read,
            duplicates_allowed=not inspection.once,
            has_run=self._has_run(flow),
            **compared._asdict(),
        )

    def _note_clean(self, job: Job, firsts: Offsets, position: Offsets, observed: Java) -> None:
        """Keep in mind where a flow has met nothing malformed: nobody need decode that once more."""
        counted = counts(job, observed)
        for argument, topic in job.flow.reads.items():
            if counted[argument]:
                self.suspicious.add(topic.name)
            elif counted[argument] == 0:
                known = self.clean.get(topic.name, OffsetRanges())
                self.clean[topic.name] = known.adding(between(topic.name, firsts, position))

    def _inspection(self, flow: Flow, job: Job, ran: Callable[[DataFrame], None]) -> Inspection:
        return Inspection(
            job.label,
            self.planner.settings,
            self.planner.known,
            possible=lambda: self._possible(job),
            once=not flow.target.may_repeat(flow.effective_guarantee),
            ran=ran,
        )

    def _possible(self, job: Job) -> DataFrame:
        """All that the flow may have written by now, if it runs."""
        self.report(job.flow.name, "recomputes what was written meanwhile, or waits")
        planner = replace(self.planner, counting=False)
        span = Span(end=_ends(self.planner, job.topics), as_table=True)
        return planner.rows(job.flow, job.label, span)

    def _windows(self, flow: Flow, results: DataFrame, written: DataFrame, read: int) -> Verification:
        self.report(flow.name, "adds up the rows of its windows")
        names = [topic.name for topic in flow.side_outputs]
        side_outputs = self._in_topics(names, self._identity(flow.name).label) if names else None
        rows = conservation(results, written, side_outputs, self._checkpoint(flow.name).path)
        there = rows.emitted + rows.waiting + rows.sent + rows.dropped
        lost, extra = max(0, rows.taken - there), max(0, there - rows.taken)
        return Verification(
            flow.name, read, rows.taken, there, lost, 0, extra, windows=rows, waiting=rows.waiting
        )

    def _in_topics(self, topics: list[str], label: str) -> DataFrame:
        return written_by(self.planner.spark, self.planner.settings, topics, label)

    def _dead_letters(self) -> Verification:
        """The malformed records of what flows have read; those of looked-up tables may be there, too."""
        self.report(_DEAD, "looks for malformed records")
        topics = list(self.pipeline.topics.values())
        label = Identity.of_dead_letters(self.planner.settings.namespace, self.pipeline.name).label
        tiers = Tiers(self.planner.settings)
        now = {topic.name: tiers.committed_ranges(topic.name) for topic in topics}
        read = self._read(now)
        found = self._in_topics([topic.name + DEAD_LETTERS for topic in topics], label)
        clean = {name: each for name, each in self.clean.items() if name not in self.suspicious}
        unknown = {name: clean.get(name, OffsetRanges()).lacking(each) for name, each in read.items()}
        due, possible = (
            self.planner.malformed(label, topics, ranges, {}).select(*MESSAGE) for ranges in (unknown, now)
        )
        compared = compare_contents(due, found.select(*MESSAGE), lambda: possible, once=True)
        count = sum(end - first for ranges in read.values() for first, end in ranges.values())
        return Verification(_DEAD, count, **compared._asdict())

    def _read(self, now: Mapping[str, Ranges]) -> dict[str, dict[int, Range]]:
        """What at least one flow has read of each topic."""
        found = {name: {p: (low, low) for p, (low, _) in ranges.items()} for name, ranges in now.items()}
        for flow in self.pipeline.flows.values():
            position = self._checkpoint(flow.name).position()
            for topic in flow.reads.values():
                for part, end in position.get(topic.name, {}).items():
                    low, reached = found[topic.name][part]
                    found[topic.name][part] = (low, max(reached, end))
        return found

    def _checkpoint(self, flow: str) -> Checkpoint:
        folder = self._identity(flow).folder(self.planner.settings.flows)
        return Checkpoint(self.planner.spark, f"{folder}/checkpoint")

    def _has_run(self, flow: Flow) -> bool:
        """Whether it has begun, as a stream or a replay."""
        folder = self._identity(flow.name).folder(self.planner.settings.flows)
        replay = Checkpoint(self.planner.spark, f"{folder}/replay")  # of a rebuild, too
        return self._checkpoint(flow.name).id is not None or replay_end(replay) is not None

    def _identity(self, flow: str) -> Identity:
        return self._generations(flow).at_work()

    def _generations(self, flow: str) -> Generations:
        named = Identity.of(self.planner.settings.namespace, self.pipeline.name, flow)
        return Generations(self.planner.spark, self.planner.settings, named)


def _distance(firsts: Offsets, position: Offsets) -> int:
    return sum(
        max(0, position[topic][number] - first)
        for topic, partitions in firsts.items()
        for number, first in partitions.items()
    )


def _position(found: Offsets, firsts: Offsets) -> Offsets:
    """Where a flow stands; a topic it has not read yet counts as empty."""
    return {
        name: {number: found.get(name, {}).get(number, first) for number, first in partitions.items()}
        for name, partitions in firsts.items()
    }


def _firsts(planner: Planner, topics: Iterable[Topic[Any]]) -> dict[str, dict[int, int]]:
    tiers = Tiers(planner.settings)
    return {
        topic.name: {number: low for number, (low, _) in tiers.offsets(topic.name).items()}
        for topic in topics
    }


def _ends(planner: Planner, topics: Iterable[Topic[Any]]) -> Offsets:
    broker = Broker(planner.settings)
    return {topic.name: broker.committed_end(topic.name) for topic in topics}
