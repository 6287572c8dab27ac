"""The runner: the one place where queries are started, watched and stopped."""

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import ClassVar, Self

from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from penstock.documents import JsonObject
from penstock.durations import duration
from penstock.errors import EngineError, FlowError
from penstock.identity import Identity
from penstock.log import Broker, DeadLetters, Groups, apply
from penstock.log.topic import DEAD_LETTERS
from penstock.pipeline.batch_history import BatchHistory
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.flow import Flow
from penstock.pipeline.flow_run import FlowRun, Reporter, warned
from penstock.pipeline.generation import Generations
from penstock.pipeline.job import Cut, Job, flow_job
from penstock.pipeline.malformed import Judge
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.plan import Planner, named_topics
from penstock.pipeline.positions import Positions
from penstock.pipeline.progress import Progress, ProgressStore
from penstock.pipeline.reported import Reported
from penstock.pipeline.status_publisher import StatusPublisher
from penstock.process.spark.session import counts_state_rows, session, shuffle_parts
from penstock.registry import Registry
from penstock.settings import Settings
from penstock.targets.target import Mode

_SPARE = 32  # task slots of a real-time flow
_STARTING = 2  # flows at a time: all together, their Python processes would not come up in time
_log = logging.getLogger("penstock")
_ENDED = ("stopped", "done", "failed")


class Runner:
    """Runs the flows of a pipeline until they are stopped.

        with Runner(fraud, settings) as runner:
            runner.wait()

    `mode` runs all flows in a mode other than their own; `flows` names those that are to run, `jobs` are run
    instead of them. `once` works on
    what is there and ends. `from_ledger` lets flows whose checkpoint was lost go on where their sink stands;
    `begin_anew` lets them forget checkpoint, state and ledger. Without `spark` a session is made, and ended
    with the runner. `report` gets the name of a flow and what happened: batches and trouble; without it,
    trouble is a warning by Python's logging.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        settings: Settings,
        *,
        mode: Mode | None = None,
        flows: Iterable[str] | None = None,
        jobs: Iterable[Job] | None = None,
        once: bool = False,
        from_ledger: bool = False,
        begin_anew: bool = False,
        spark: SparkSession | None = None,
        report: Reporter | None = None,
    ) -> None:
        self.pipeline = pipeline
        self._settings = settings
        self._report = report
        given = None if jobs is None else list(jobs)
        self._flows = (
            [flow.in_mode(mode or flow.mode) for flow in chosen(pipeline, flows)]
            if given is None
            else [job.flow for job in given]
        )
        self._own_spark = spark is None
        self._prepare_topics()
        self._registry = registry_of(self._flows, settings)
        self.spark = spark or self._session()
        self.progress = ProgressStore(settings.data / "progress.db")
        self._positions = Positions(Groups(settings))
        at_work = given or [self._at_work(flow) for flow in self._flows]
        planner = Planner(self.spark, settings, self._registry, counting=True)
        judge = Judge(Identity.of_dead_letters(settings.namespace, pipeline.name), planner)
        gate, counts = threading.Semaphore(_STARTING), counts_state_rows(self.spark)
        self.runs = {
            job.flow.name: FlowRun(
                job,
                planner,
                judge,
                self._checkpoint(job),
                self._lanes(),
                once,
                from_ledger or self._begins_behind_a_rebuild(job),
                begin_anew,
                report or warned,
                gate,
                history=BatchHistory(counts_rows=counts),
            )
            for job in at_work
        }
        self._status = StatusPublisher(settings, pipeline.name, self.runs.values())
        self._warned = False
        self._listener = _Listener(self)
        self.spark.streams.addListener(self._listener)

    def start(self) -> None:
        for run in self.runs.values():
            run.start()
        self._status.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every flow has ended; the first failure is raised. False when time is up."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while any(run.status not in _ENDED for run in self.runs.values()):
            self._raise_failure()
            if deadline is not None and time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        self._raise_failure()
        return True

    def stop(self) -> None:
        """End every flow with its batch, and what the runner made."""
        for run in self.runs.values():
            run.stop()
        for run in self.runs.values():
            run.wait(90)
        if not self._engine_is_gone:
            self._hear_out()
            self.spark.streams.removeListener(self._listener)
        self._status.close()
        self._positions.close()
        self.progress.close()
        if self._registry is not None:
            self._registry.close()
        if self._own_spark and not self._engine_is_gone:
            self.spark.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def took(self, progress_report: JsonObject) -> None:
        """A batch of one of the pipeline's flows is finished."""
        found = (each for each in self.runs.values() if each.job.query == progress_report["name"])
        run = next(found, None)
        if run is None:
            return
        run.progressed(progress_report)
        named = run.job.query.removeprefix(f"{run.job.identity.owner}.")
        progress = Progress.of(run.job.identity.owner, named, progress_report)
        if not run.job.rebuilds:
            every = max(duration(run.job.flow.trigger_interval).total_seconds(), progress.seconds)
            self._positions.reached(run.job.identity.group, progress.end, every)
        self._keep(progress)
        if progress.rows and self._report is not None:
            self._report(run.job.flow.name, Reported.of(str(progress), batch=progress.batch))

    def _keep(self, progress: Progress) -> None:
        """A flow works without its progress being seen: that it can't be kept is logged once."""
        try:
            self.progress.add(progress)
        except sqlite3.Error as error:
            if not self._warned:
                self._warned = True
                _log.warning("the progress of %s can't be kept: %s", self.pipeline.name, error)

    @property
    def _engine_is_gone(self) -> bool:
        return any(isinstance(run.failure, EngineError) for run in self.runs.values())

    def _hear_out(self) -> None:
        """The last batches may be finished before we hear of them."""
        with suppress(Py4JJavaError):
            self.spark._jsc.sc().listenerBus().waitUntilEmpty(10_000)

    def _raise_failure(self) -> None:
        for run in self.runs.values():
            if run.status == "failed" and run.failure is not None:
                raise run.failure

    def _prepare_topics(self) -> None:
        """Topics that are missing are made as declared; `penstock topics apply` changes those that differ."""
        broker = Broker(self._settings)
        declared = named_topics(self._flows)
        existing = broker.topics(declared)
        apply([topic for name, topic in declared.items() if name not in existing], broker)
        for name in self._read:
            DeadLetters(self._settings).ensure(name + DEAD_LETTERS)

    @property
    def _read(self) -> set[str]:
        """The topics that the chosen flows read or look up."""
        found = [(*flow.reads.values(), *flow.looks_up.values()) for flow in self._flows]
        return {topic.name for topics in found for topic in topics}

    def _session(self) -> SparkSession:
        """In real time all tasks of a flow run all the time, and the others need room beside them.

        Slots cost nothing while they are free: some are there for partitions that are added.
        """
        states = Broker(self._settings).topics(self._read)
        slots = sum(state.partitions for state in states.values()) + len(self._flows)
        for flow in self._flows:
            if flow.mode == "realtime":
                own = sum(states[topic.name].partitions for topic in flow.reads.values())
                slots += own + shuffle_parts(self._settings) + _SPARE
        return session(self._settings, name=self.pipeline.name, partitions=slots)

    def _lanes(self) -> int:
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or os.cpu_count() or 2)

    def _at_work(self, flow: Flow) -> Job:
        """The job of a flow in the generation that is at work."""
        job = flow_job(self.pipeline, flow, self._settings.namespace)
        generations = Generations(self.spark, self._settings, job.identity)
        known = generations.read()
        cut = Cut(known.cut, known.cut_watermark) if known.cut else None
        return replace(job, identity=generations.at_work(), cut=cut)

    def _begins_behind_a_rebuild(self, job: Job) -> bool:
        """Whether a flow was rebuilt and has no checkpoint yet: its ledger has where it goes on."""
        if job.rebuilds or job.flow.mode == "replay":
            return False
        generation = Generations(self.spark, self._settings, job.identity).read()
        return bool(generation.end) and self._checkpoint(job).id is None

    def _checkpoint(self, job: Job) -> Checkpoint:
        kind = "replay" if job.flow.mode == "replay" else "checkpoint"
        return Checkpoint(self.spark, f"{job.identity.folder(self._settings.flows)}/{kind}")


class _Listener(StreamingQueryListener):
    """Hears of every batch that is finished, in a thread of Spark's.

    It is called by Java itself: PySpark's own way asks Java for every figure of a batch, hundreds of calls
    in the moment in which a real-time flow is planned anew.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    @cached_property
    def _jlistener(self) -> JavaObject:
        java: JavaObject = self._runner.spark._jvm
        return java.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self)

    def onQueryStarted(self, event: JavaObject) -> None:
        pass

    def onQueryIdle(self, event: JavaObject) -> None:
        pass

    def onQueryTerminated(self, event: JavaObject) -> None:
        pass

    def onQueryProgress(self, event: JavaObject) -> None:
        self._runner.took(json.loads(event.progress().json()))

    class Java:
        implements: ClassVar = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


def chosen(pipeline: Pipeline, names: Iterable[str] | None) -> list[Flow]:
    """Return the flows of these names, or all of them."""
    wanted = list(pipeline.flows if names is None else names)
    unknown = set(wanted) - set(pipeline.flows)
    if unknown or not wanted:
        raise FlowError(
            f"pipeline {pipeline.name!r} has no flow {min(unknown, default='at all')!r}",
            hint=f"it has {', '.join(pipeline.flows) or 'none'}",
        )
    return [pipeline.flows[name] for name in wanted]


def registry_of(flows: list[Flow], settings: Settings) -> Registry | None:
    """Return the registry, if one of the flows needs it."""
    named = named_topics(flows).values()
    return Registry(settings) if any(topic.is_registered for topic in named) else None
