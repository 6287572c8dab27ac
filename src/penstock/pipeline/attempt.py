"""One try at running a job: opened, started, watched until it ends, is stopped or fails."""

import json
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.documents import JsonObject
from penstock.durations import duration
from penstock.errors import FlowError, LogError
from penstock.log import Broker
from penstock.log.ledger import Batch, Entry, Offsets
from penstock.pipeline.bottleneck import SINK, SLOTS
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.claim import Claim
from penstock.pipeline.clock import Clock
from penstock.pipeline.decoders import DecoderStarts
from penstock.pipeline.job import Cut, Job
from penstock.pipeline.limits import refuse_limits
from penstock.pipeline.malformed import Judge, counts, observed_in
from penstock.pipeline.pinning import PASSED, Pinning, has_passed, refuse_other_watermark
from penstock.pipeline.plan import WHOLE, Planner, Span
from penstock.pipeline.read_topics import ReadTopics
from penstock.pipeline.recovery import Recovery
from penstock.pipeline.seeding import Seeding
from penstock.pipeline.settled import SettledBatches
from penstock.pipeline.state import pins_of, refuse_changed_state
from penstock.points import reach
from penstock.process.spark.java import Java
from penstock.process.state.pinned import Pins, pinning
from penstock.targets.sink import Sink

_TICK = 0.1
_REPLAY = "replay.json"
_LOADED = "loaded.json"  # beside the checkpoint, once what the tables held has been read
_MUCH, _CATCHING_UP = 5_000, 3  # more events are worked on in batches before real time, a few times
_STOP_PATIENCE = 60.0
_REALTIME_STOP = 5.0
_LOOK_AT_TOPICS = 5.0  # seconds; flows with a sink of ours look at them in every batch


class StoppedError(Exception):
    """The batch was not begun, because the flow is to stop."""


class GrownError(Exception):
    """The topics have more partitions than when the flow was planned, and real time has no tasks for them."""


@dataclass
class Attempt:
    """Runs a job with what is known now; `once` ends it when all that is there was worked on."""

    job: Job
    planner: Planner
    judge: Judge
    checkpoint: Checkpoint
    claim: Claim
    stopping: threading.Event
    lanes: int
    once: bool = False
    from_ledger: bool = False
    report: Callable[[str], None] = lambda _: None
    begun: Callable[[], None] = lambda: None  # called when the flow is at work, the first time at least
    batches: int = 0  # counted up by the runner's listener
    failure: BaseException | None = None
    has_written: bool = field(default=True, init=False)  # False of a replay that was done before
    _sink: Sink | None = field(default=None, init=False)
    _passed: int = field(default=0, init=False)
    _looked: float = field(default=0.0, init=False)
    _partitions: int = field(default=0, init=False)
    _decoders: dict[str, str] = field(default_factory=dict, init=False)
    _batch_began: float = field(default_factory=time.monotonic, init=False)
    _in_sink: float = field(default=0.0, init=False)  # seconds, of the last batch
    _silent: bool = field(default=False, init=False)  # batches are computed and not written
    _clock: Clock = field(init=False)
    _topics: ReadTopics = field(init=False)
    _seeding: Seeding = field(init=False)
    _settled: SettledBatches = field(init=False)
    _starts: DecoderStarts = field(init=False)

    def __post_init__(self) -> None:
        self._clock = Clock(self.planner, self.job, self.checkpoint, self.report)
        self._topics = ReadTopics(self.job, self.planner.settings, self.checkpoint)
        self._seeding = Seeding(self.job, self.planner, self.judge, self.checkpoint)
        self._starts = DecoderStarts(self.checkpoint)
        self._settled = SettledBatches(self.job, self.planner, self.judge, self.checkpoint, self._starts)

    def progressed(self, report: JsonObject) -> None:
        """A batch is finished; called in another thread. The report gets what Spark does not know."""
        if self._sink is not None:
            report["durationMs"][SINK] = int(1000 * self._in_sink)
            report[SLOTS] = self.planner.spark.sparkContext.defaultParallelism
        self.batches += 1
        if self._clock.topics:
            self._clock.reports.append(report)

    def run(self) -> None:
        """Run until the end; raises what made it fail."""
        self._topics.open()
        self._starts.begin(self._present_decoders())
        if self.job.flow.mode == "replay":
            self._replay()
            return
        if not self.from_ledger and not self._seeding.see_to(self.report):
            self._topics.refuse_archived_beginning()
        if self.job.loads and self.checkpoint.read(_LOADED) is None:
            self._run(Span(tables_only=True), until_end=True)
            if not self.stopping.is_set():
                self.checkpoint.write(_LOADED, "{}")
        if self.job.cut is not None and not has_passed(self.checkpoint, self.job.cut):
            self._pass_cut(self.job.cut)
        if self.job.stops_at is not None:
            self._advance(self.job.stops_at)
            return
        for _ in range(_CATCHING_UP if self.job.flow.mode == "realtime" and not self.once else 0):
            if not self.stopping.is_set() and self._backlog() > _MUCH:
                self._run(Span(in_batches=True), until_end=True)
        if not self.stopping.is_set():
            self._run(WHOLE, until_end=self.once)

    def forget(self) -> Job:
        """Forget what was read and written: it begins anew; its results stay. Return the job of then."""
        self.checkpoint.delete()
        if not self.job.flow.is_native:
            sink = self._sink_of(self._planned(WHOLE))
            sink.open(anew=True)
            sink.close()
        self.claim.forget()
        self.job = replace(self.job, cut=None)
        return self.job

    def _run(self, span: Span, *, until_end: bool) -> None:
        """Run a query over a span, to the end that its topics have when it starts, or until it is stopped."""
        start = self._start_native if self.job.flow.is_native else self._start_with_sink
        self._watch(start(span, until_end), until_end)
        if until_end and not self.stopping.is_set() and self._clock.finish():
            self._watch(start(replace(span, ticks_only=True), True), True)
        while not until_end and self._clock.unplanned and not self.stopping.is_set():
            self._watch(start(span, False), False)

    def _pass_cut(self, cut: Cut) -> None:
        """Compute what another generation has written, for the state, and write nothing of it.

        The mark beside the checkpoint says that it is done: killed before, all batches so far were silent. A
        flow that goes on from its ledger gets it with its new checkpoint.
        """
        if self._is_lost():
            return
        if self.job.flow.is_native:
            raise FlowError(
                f"flow {self.job.label!r} was swapped in, and Spark would emit again what was emitted by the "
                "generation before it",
                hint="run it once as an exactly-once stream: `penstock run "
                f"{self.job.identity.pipeline} --flow {self.job.identity.flow} --mode stream --once`",
            )
        self._silent = True
        self._advance(cut.position)
        self._silent = False
        if not self.stopping.is_set():
            refuse_other_watermark(self.job, cut, self.checkpoint)
            reach("swap.passed", self.job.label)
            self.checkpoint.write(PASSED, cut.mark)

    def _is_lost(self) -> bool:
        """Whether the flow is to go on from its ledger, as its checkpoint does not have what that has."""
        if not self.from_ledger or self.job.flow.is_native:
            return False
        return self._recovery.is_needed(self._sink_of(self._planned(WHOLE)).entries())

    def _advance(self, position: Offsets) -> None:
        """Work up to a position of the log, to the offset; a batch that was planned is worked on first."""
        pinning = Pinning(self.job, self.checkpoint, position, strict=self._silent)
        while not self.stopping.is_set() and pinning.plan():
            self._run(Span(ticks_only=True), until_end=True)
            reach("swap.advanced", self.job.label)

    def _backlog(self) -> int:
        """How many events are waiting: in real time they would be worked on one by one."""
        reached, broker = self.checkpoint.position(), Broker(self.planner.settings)
        return sum(
            end - reached.get(topic.name, {}).get(partition, first)
            for topic in self.job.topics
            for partition, (first, end) in broker.offsets(topic.name).items()
        )

    def _start_native(self, span: Span, until_end: bool) -> StreamingQuery:
        self.claim.refuse_replaced()
        self._settled.settle_or_roll_back()
        self._partitions = self._topics.count_partitions()
        frame, flow = self._planned(span), self.job.flow
        writer = flow.target.native_writer(frame, flow.mode, self.planner.settings)
        return self._started(writer, until_end)

    def _start_with_sink(self, span: Span, until_end: bool) -> StreamingQuery:
        self.claim.refuse_replaced()
        frame = self._planned(span)
        sink = self._sink = self._sink_of(frame)
        recovery = self._recovery
        lost = self.from_ledger and recovery.is_needed(sink.entries())
        if lost:
            recovery.refuse_state(frame)
        else:
            self.checkpoint.refuse_misfit(sink.entries())  # before anybody is shut out
        entries = self.claim.take(sink)
        if lost:
            start = recovery.settle(sink, entries, self._before_commit)
            frame = self._planned(replace(span, start=start))
        else:
            self.checkpoint.refuse_misfit(entries)
        self._settled.settle_past()
        return self._started(frame.writeStream.foreachBatch(self._take), until_end)

    def _sink_of(self, frame: DataFrame) -> Sink:
        return self.job.sink(self.planner.settings, frame.schema, self.lanes)

    @property
    def _recovery(self) -> Recovery:
        return Recovery(self.job, self.planner, self.checkpoint, self._topics)

    def _planned(self, span: Span) -> DataFrame:
        pins = Pins()
        seed = None if self.job.flow.mode == "replay" else self._seeding.seed
        if seed is not None:
            span = replace(span, seed=seed, start=seed.start)

        def plan() -> DataFrame:
            nonlocal pins
            pins = pins_of(self.checkpoint)
            with pinning(pins):
                return self.planner.rows(self.job.flow, self.job.label, span)

        self._decoders = self._present_decoders()
        frame = self._clock.planned(plan, span.start)
        if self.job.flow.mode == "realtime":
            refuse_limits(self.job.label, frame)
        if self.job.flow.mode != "replay":
            reads = [topic.name for topic in self.job.topics] + self._clock.topics
            refuse_changed_state(self.job, frame, self.checkpoint, reads, pins)
        return frame

    def _started(self, writer: DataStreamWriter, until_end: bool) -> StreamingQuery:
        job = self.job
        paced = {"realTime" if job.flow.mode == "realtime" else "processingTime": job.flow.trigger_interval}
        trigger = {"availableNow": True} if until_end else paced
        writer = writer.queryName(job.query).outputMode(job.flow.output).trigger(**trigger)
        try:
            started: StreamingQuery = writer.option("checkpointLocation", self.checkpoint.path).start()
        except AnalysisException as error:
            raise FlowError(f"flow {job.label!r} can't run: {error.getMessage()}") from error
        return started

    def _take(self, frame: DataFrame, number: int) -> None:
        """Take a batch in; what fails here is kept, because Spark would only pass its text on."""
        try:
            if self._is_to_stop():
                raise StoppedError
            reach("flow.planned", self.job.label)
            assert self._sink is not None  # noqa: S101
            batch = replace(self.checkpoint.batch(number), topics=self._topics.ids)
            computed = time.monotonic()

            def before_commit(_: DataFrame | None = None) -> None:
                nonlocal computed
                self._before_commit(batch, self._observed())
                computed = time.monotonic()

            if self._silent:
                _read(frame)
                before_commit()
                self._sink.write(_nothing_of(frame), batch)
            elif not self._sink.write(frame, batch, before_commit):
                _read(frame)
                before_commit()  # at most once, the entry came first
            self._in_sink = time.monotonic() - computed
            reach("flow.written", self.job.label)
        except BaseException as error:
            self.failure = error
            raise

    def _before_commit(self, batch: Batch, observed: Java) -> None:
        """All rows of a batch were computed and none is committed: what must be true before, is made so."""
        self._topics.refuse_made_again()
        if self._decoders != self._present_decoders():
            raise LogError(f"schemas were learned while flow {self.job.label!r} ran: it is planned again")
        self.judge.settle(self.job, batch, self._starts.since(), counts(self.job, observed))
        reach("flow.settled", self.job.label)

    def _present_decoders(self) -> dict[str, str]:
        topics = (*self.job.topics, *self.job.flow.looks_up.values())
        return {topic.name: self.planner.decoder(topic) for topic in topics}

    def _observed(self) -> Java:
        """What Spark has observed in the batch that is being worked on."""
        running = self.planner.spark._jsparkSession.streams().active()
        query = next(each for each in running if each.name() == self.job.query)
        return query.streamingQuery().lastExecution().observedMetrics()

    def _is_to_stop(self) -> bool:
        """Whether the flow is to end with its batch, for good or to be planned again."""
        return self.stopping.is_set() or self._clock.wants_planning

    def _watch(self, query: StreamingQuery, until_end: bool) -> None:
        try:
            self._clock.resume(until_end=until_end)
            while not query.awaitTermination(_TICK):  # type: ignore[arg-type]
                self._reach_commits()
                if self.batches or self.job.flow.is_native or not query.status["isTriggerActive"]:
                    self.begun()
                if self.job.flow.is_native and not self.stopping.is_set():
                    self._look_after_native()
                if not until_end:
                    self._clock.look(query)
                if self._is_to_stop():
                    self._stop(query)
        except Exception:
            if not isinstance(self.failure, StoppedError):
                raise
            self.failure = None
        finally:
            query.stop()
            self._clock.close()
            if self._sink is not None:
                self._sink.close()
        if self.job.flow.is_native:
            self._settled.settle_committed()

    def _look_after_native(self) -> None:
        """Spark commits by itself what it writes by itself: what should be before, is right behind."""
        if time.monotonic() - self._looked > _LOOK_AT_TOPICS:
            self._looked = time.monotonic()
            self._topics.refuse_made_again()
            self._settled.settle_committed()
            if self.job.flow.mode == "realtime" and self._topics.count_partitions() > self._partitions:
                raise GrownError

    def _reach_commits(self) -> None:
        """Pass the point behind each batch here, not in the listener, where one flow would hold up all."""
        while self._passed < self.batches:
            self._passed += 1
            self._batch_began = time.monotonic()
            reach("flow.committed", self.job.label)

    def _stop(self, query: StreamingQuery) -> None:
        """Wait for the end of the batch: one that is broken off would be worked on twice.

        In real time there is always a batch. If its end is not near, it is broken off: its results are out,
        and are re-emitted after the next start: readers know duplicates by their ids.
        """
        done, realtime = self.batches, self.job.flow.mode == "realtime"
        deadline = time.monotonic() + (_REALTIME_STOP if realtime else _STOP_PATIENCE)
        while query.isActive and time.monotonic() < deadline:
            resting = not query.status["isTriggerActive"]
            if resting or (realtime and (self.batches > done or self._far_from_its_end())):
                break
            time.sleep(_TICK)
        query.stop()

    def _far_from_its_end(self) -> bool:
        """Whether a real-time batch goes on for longer than somebody wants to wait."""
        ends = self._batch_began + duration(self.job.flow.trigger_interval).total_seconds()
        return ends - time.monotonic() > _REALTIME_STOP

    def _replay(self) -> None:
        """One batch over the whole log; its end is written down first, so that a crash can't move it."""
        self.claim.refuse_replaced()
        end = self._replay_end()
        frame = self._planned(Span(end=end))
        sink = self._sink = self._sink_of(frame)
        batch = Batch("replay", 0, {}, end, self._topics.ids)
        refuse_other_batches(self.job, batch, sink.entries())  # before anybody is shut out
        self.claim.take(sink)
        self.has_written = sink.write(frame, batch, lambda run: self._before_commit(batch, observed_in(run)))
        if not self.has_written:
            offsets = sum(offset for each in end.values() for offset in each.values())
            self.report(f"its replay was done before, up to {offsets:,} offsets: nothing was written")
        sink.close()

    def _replay_end(self) -> Offsets:
        end = replay_end(self.checkpoint)
        if end is None:
            broker = Broker(self.planner.settings)
            end = self.job.end or {topic.name: broker.committed_end(topic.name) for topic in self.job.topics}
            self.checkpoint.write(_REPLAY, json.dumps(end))
        return end


def replay_end(checkpoint: Checkpoint) -> Offsets | None:
    """Return where a replay ends; None before it has begun."""
    written = checkpoint.read(_REPLAY)
    if written is None:
        return None
    return {
        topic: {int(number): offset for number, offset in partitions.items()}
        for topic, partitions in json.loads(written).items()
    }


def refuse_other_batches(job: Job, replay: Batch, entries: Iterable[Entry]) -> None:
    """Refuse a replay into what was written by something else: it would double that, or not follow it."""
    other = next((each.batch for each in entries if each.batch not in (None, replay)), None)
    if other is not None:
        raise FlowError(
            f"flow {job.label!r} has written {other}, and a replay would write all of the log again",
            hint="replay it into a new target, by a flow of another name; or make its table anew: "
            f"`penstock rebuild {job.identity.pipeline} {job.identity.flow}`",
        )


def _nothing_of(frame: DataFrame) -> DataFrame:
    """No rows, of the columns of a batch."""
    return frame.sparkSession.createDataFrame([], frame.schema)


def _read(frame: DataFrame) -> None:
    """Compute a batch whose results are out already: the state behind them was not saved."""
    frame.write.format("noop").mode("append").save()
