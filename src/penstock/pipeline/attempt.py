"""One try at running a job: opened, started, watched until it ends, is stopped or fails."""

import json
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.durations import duration
from penstock.errors import FlowError, LedgerError
from penstock.log import Broker
from penstock.log.ledger import Batch, Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.clock import Clock
from penstock.pipeline.job import Job
from penstock.pipeline.limits import refuse_limits
from penstock.pipeline.plan import WHOLE, Planner, Span
from penstock.pipeline.state import refuse_changed_state
from penstock.points import reach
from penstock.process.java_client import java_settings
from penstock.process.windows.watermark import ticking
from penstock.sinks.sink import Sink

_TICK = 0.1
_LOADED = "loaded.json"  # beside the checkpoint, once what the tables held has been read
_MUCH, _CATCHING_UP = 5_000, 3  # more events are worked on in batches before real time, a few times
_STOP_PATIENCE = 60.0
_REALTIME_STOP = 2.0
_REALTIME_LINGER = "3"  # ms; with none, each result is a request, and half of the machine is busy with those


class StoppedError(Exception):
    """The batch was not begun, because the flow is to stop."""


@dataclass
class Attempt:
    """Runs a job with what is known now; `once` ends it when all that is there was worked on."""

    job: Job
    planner: Planner
    checkpoint: Checkpoint
    stopping: threading.Event
    lanes: int
    once: bool = False
    from_ledger: bool = False
    batches: int = 0  # counted up by the runner's listener
    failure: BaseException | None = None
    _sink: Sink | None = field(default=None, init=False)
    _passed: int = field(default=0, init=False)
    _clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        self._clock = Clock(self.planner.spark, self.planner.settings, self.job)

    def run(self) -> None:
        """Run until the end; raises what made it fail."""
        if self.job.mode == "replay":
            self._replay()
            return
        if self.job.loads and self.checkpoint.read(_LOADED) is None:
            self._run(Span(tables_only=True), until_end=True)
            if not self.stopping.is_set():
                self.checkpoint.write(_LOADED, "{}")
        for _ in range(_CATCHING_UP if self.job.mode == "realtime" and not self.once else 0):
            if not self.stopping.is_set() and self._backlog() > _MUCH:
                self._run(WHOLE, until_end=True)
        if not self.stopping.is_set():
            self._run(WHOLE, until_end=self.once)

    def _run(self, span: Span, *, until_end: bool) -> None:
        """Run a query over a span, to the end that its topics have when it starts, or until it is stopped."""
        start = self._start_native if self.job.native else self._start_with_sink
        self._watch(start(span, until_end), until_end)

    def _backlog(self) -> int:
        """How many events are waiting: in real time they would be worked on one by one."""
        reached, broker = self.checkpoint.position(), Broker(self.planner.settings)
        return sum(
            end - reached.get(topic.name, {}).get(partition, first)
            for topic in self.job.topics
            for partition, (first, end) in broker.offsets(topic.name).items()
        )

    def _start_native(self, span: Span, until_end: bool) -> StreamingQuery:
        frame = self._planned(span)
        options = {f"kafka.{name}": value for name, value in java_settings(self.planner.settings).items()}
        if self.job.mode == "realtime":
            options["kafka.linger.ms"] = _REALTIME_LINGER
        return self._started(frame.writeStream.format("kafka").options(**options), until_end)

    def _start_with_sink(self, span: Span, until_end: bool) -> StreamingQuery:
        frame = self._planned(span)
        sink = self._sink = self.job.sink(self.planner.settings, frame, self.lanes)
        entries = sink.open()
        if self.from_ledger and self.checkpoint.id is None:
            start = _common_end([entry.batch for entry in entries if entry.batch])
            frame = self._planned(replace(span, start=start))
        else:
            self.checkpoint.refuse_misfit(entries)
        return self._started(frame.writeStream.foreachBatch(self._take), until_end)

    def _planned(self, span: Span) -> DataFrame:
        self._clock.begin_at(span.start)
        with ticking(self._clock):
            frame = self.job.rows(self.planner, span)
        if self.job.mode == "realtime":
            refuse_limits(self.job.label, frame)
        if self.job.mode != "replay":
            reads = [topic.name for topic in self.job.topics] + self._clock.topics
            refuse_changed_state(self.job, frame, self.checkpoint, reads)
        return frame

    def _started(self, writer: Any, until_end: bool) -> StreamingQuery:
        job = self.job
        paced = {"realTime" if job.mode == "realtime" else "processingTime": job.pause}
        trigger = {"availableNow": True} if until_end else paced
        writer = writer.queryName(job.label).outputMode(job.output).trigger(**trigger)
        try:
            started: StreamingQuery = writer.option("checkpointLocation", self.checkpoint.path).start()
        except AnalysisException as error:
            raise FlowError(f"flow {job.label!r} can't run: {error.getMessage()}") from error
        return started

    def _take(self, frame: DataFrame, number: int) -> None:
        """Take a batch in; what fails here is kept, because Spark would only pass its text on."""
        try:
            if self.stopping.is_set():
                raise StoppedError
            reach("flow.planned", self.job.label)
            assert self._sink is not None  # noqa: S101
            if not self._sink.write(frame, self.checkpoint.batch(number)):
                _read(frame)
            reach("flow.written", self.job.label)
        except BaseException as error:
            self.failure = error
            raise

    def _watch(self, query: StreamingQuery, until_end: bool) -> None:
        try:
            while not query.awaitTermination(_TICK):  # type: ignore[arg-type]
                self._reach_commits()
                if self.stopping.is_set():
                    self._stop(query)
                elif not until_end:
                    self._clock.look(query)
        except Exception:
            if not isinstance(self.failure, StoppedError):
                raise
        finally:
            query.stop()
            self._clock.close()
            if self._sink is not None:
                self._sink.close()

    def _reach_commits(self) -> None:
        """Pass the point behind each batch here, not in the listener, where one flow would hold up all."""
        while self._passed < self.batches:
            self._passed += 1
            reach("flow.committed", self.job.label)

    def _stop(self, query: StreamingQuery) -> None:
        """Wait for the end of the batch: one that is broken off would be worked on twice.

        In real time there is always a batch, and of one without rows Spark does not say that it has ended.
        """
        done, realtime = self.batches, self.job.mode == "realtime"
        patience = duration(self.job.pause).total_seconds() + _REALTIME_STOP if realtime else _STOP_PATIENCE
        deadline = time.monotonic() + patience
        while query.isActive and time.monotonic() < deadline:
            resting = not query.status["isTriggerActive"]
            if resting or (realtime and self.batches > done):
                break
            time.sleep(_TICK)
        query.stop()

    def _replay(self) -> None:
        """One batch over the whole log; its end is written down first, so that a crash can't move it."""
        end = self._replay_end()
        frame = self._planned(Span(end=end))
        sink = self._sink = self.job.sink(self.planner.settings, frame, self.lanes)
        sink.open()
        sink.write(frame, Batch("replay", 0, {}, end))
        sink.close()

    def _replay_end(self) -> Offsets:
        written = self.checkpoint.read("replay.json")
        if written is None:
            broker = Broker(self.planner.settings)
            end = {topic.name: broker.committed_end(topic.name) for topic in self.job.topics}
            written = json.dumps(end)
            self.checkpoint.write("replay.json", written)
        return {
            topic: {int(number): offset for number, offset in partitions.items()}
            for topic, partitions in json.loads(written).items()
        }


def _read(frame: DataFrame) -> None:
    """Compute a batch whose results are out already: the state behind them was not saved."""
    frame.write.format("noop").mode("append").save()


def _common_end(written: list[Batch]) -> Offsets | None:
    """Where all lanes of a sink stand, if they stand at one place."""
    ends = [batch.end for batch in written]
    if any(end != ends[0] for end in ends):
        raise LedgerError(
            "the sink's lanes stand at different places: its last batch was written in part",
            hint="only the lost checkpoint can say what is missing: bring it back, or write a new target",
        )
    return ends[0] if ends else None
