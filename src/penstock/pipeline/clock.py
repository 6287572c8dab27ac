"""The clock of a flow: its watermark is written to a topic, tick by tick, and comes back as a stream.

Ticks go through the log so that a batch that is repeated meets the same watermark. A tick follows the commit
of a batch; it holds the highest times of all writers and says how far they were read. What was committed
after the last tick is looked up in the log.
"""

import json
import time
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from penstock.documents import JsonObject
from penstock.durations import duration
from penstock.events import new_id
from penstock.log import Broker
from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.event_times import EventTimes
from penstock.pipeline.holds import Holds
from penstock.pipeline.job import Job
from penstock.pipeline.plan import Planner
from penstock.pipeline.ticks import Ticks
from penstock.pipeline.tracker import MOST, QUIET, Demand, Writer
from penstock.pipeline.upstream import Upstream
from penstock.points import reach
from penstock.process.time.source_columns import SourceColumn, columns_of
from penstock.process.time.watermark import TimeLine, Watermark, ticking

_GENERATION = "clock.json"  # beside the checkpoint: ticks of an earlier checkpoint are not ours
_MICROSECOND = timedelta(microseconds=1)
_SETTLED = 1.0  # seconds; a transaction's rows become visible partition by partition
_KEPT_EVERY = 5.0  # seconds, while the watermark stands still
_PLANNED_EVERY = 10.0
_LONG = 2 * QUIET  # that a watermark is held, before it is said
_LOOK_EVERY = 1.0
Report = Callable[[str], None]


class Clock:
    """Ticks for the watermarks of one flow; for flows that have none it does nothing.

    A real-time flow observes nothing: its watermark is Spark's own, and ticks follow the clock only.
    """

    def __init__(self, planner: Planner, job: Job, checkpoint: Checkpoint, report: Report) -> None:
        self.topic = job.identity.clock
        self.columns: dict[int, SourceColumn] = {}
        self.reports: deque[JsonObject] = deque()  # of batches, filled by another thread
        self._planner, self._job, self._checkpoint, self._report = planner, job, checkpoint, report
        self._times = EventTimes(planner, {topic.name: topic for topic in job.topics})
        self._tracker = self._times.tracker
        self._ticks = Ticks(planner.settings, self.topic)
        self._start: Offsets | None = None
        self._generation: str | None = None
        self._idle: float | None = None  # seconds, if one of the watermarks says it
        self._stirred: float | None = None  # when something came
        self._silence: Holds | None = None  # what has been waited for since then, if it is long ago
        self._brought: dict[str, dict[int, int]] = {}
        self._written: int | None = None
        self._kept_at = self._planned_at = 0.0
        self._looked_at = self._asked_at = self._reported_at = 0.0
        self._expected_since: float | None = None
        self._reported_many = False
        self._until_end = False

    @property
    def topics(self) -> list[str]:
        """What the flow reads of it: nothing, unless one of its watermarks asked for it."""
        return [] if self._generation is None else [self.topic]

    @property
    def unplanned(self) -> bool:
        """Whether writers have come that the plan has no place for."""
        return self._times.unplanned

    @property
    def wants_planning(self) -> bool:
        """Whether it is time to plan again, so that all writers have a place."""
        due = time.monotonic() - self._planned_at > _PLANNED_EVERY
        return self.unplanned and due and not self._until_end

    def planned(self, plan: Callable[[], DataFrame], start: Offsets | None) -> DataFrame:
        """Return what is planned with this clock; twice, if only then it is known what is to be observed."""
        self._start = start
        while True:
            self.columns, self._demands = {}, set[Demand]()
            self._times.begin()
            with ticking(self):
                frame = plan()
            if not self._times.demand(self._demands):
                self._kept_at = self._planned_at = time.monotonic()
                return frame

    def source(self, name: str, rows: DataFrame) -> DataFrame:
        """Return what the flow reads of a topic, with its times observed."""
        if self._job.flow.mode != "stream":
            return rows
        seen = self._times.observe(name, rows)
        self.columns |= columns_of(seen, name)
        return seen

    def ticks(self, watermark: Watermark, lines: frozenset[TimeLine]) -> DataFrame | None:
        """Return the stream of ticks, unless nothing but Spark moves the watermark."""
        idle = None if watermark.idle is None else duration(watermark.idle).total_seconds()
        if idle is None and not lines:
            return None
        if idle is not None:
            self._idle = max(idle, self._idle or idle)  # none may move sooner than it says
        delay = duration(watermark.delay, zero=True) // _MICROSECOND
        self._demands |= {Demand(line, delay, QUIET if idle is None else idle) for line in lines}
        generation = self._generation = self._generation or self._restored()
        return self._ticks.stream(self._planner.spark, generation, self._start)

    def resume(self, *, until_end: bool) -> None:
        """Take up what was committed after the last tick, before anything else is learned."""
        self._until_end = until_end
        self.reports.clear()  # of an older plan, whose places may be others: the log is looked into
        if self.topics:
            self._times.forget_unknown_lines()
            self._catch_up()
            self._tracker.resume(time.monotonic())
            if any(self._times.position.values()):
                self._stirred = time.monotonic()

    def look(self, query: StreamingQuery) -> None:
        """Learn from the batches that have ended, and write a tick if the watermark is to move."""
        if self.topics:
            self._hear()
            self._advance()
            if self._idle is not None and not query.status["isDataAvailable"]:
                self._follow(self._idle + duration(self._job.flow.trigger_interval).total_seconds())

    def finish(self) -> bool:
        """Learn from what has ended; True if there are ticks that nobody has read."""
        if not self.topics:
            return False
        self._catch_up()
        for topic, end in self._times.position.items():
            self._times.note_unread(topic, end, end)
        time.sleep(max(0.0, self._times.new_at + _SETTLED - time.monotonic()))
        self._advance()
        read = self._checkpoint.position().get(self.topic, {}).get(0, 0)
        return self._ticks.end() > read

    def close(self) -> None:
        """Let go of the broker."""
        self._ticks.close()

    @cached_property
    def _broker(self) -> Broker:
        return Broker(self._planner.settings)

    @cached_property
    def _upstream(self) -> Upstream:
        return Upstream(self._planner.settings, self._job.may_be_written_by, self._job.siblings)

    @cached_property
    def _holds(self) -> Holds:
        return self._new_holds()

    def _new_holds(self) -> Holds:
        return Holds(self._upstream, self._ends)

    def _ends(self, topic: str) -> dict[int, int]:
        """Where partitions end, what is not decided yet included: it may be of a quiet writer."""
        return {number: end for number, (_, end) in self._broker.offsets(topic).items()}

    def _restored(self) -> str:
        """Take over what the last tick of this checkpoint says, and return what its ticks are known by."""
        self._ticks.prepare()
        written = self._checkpoint.read(_GENERATION)
        if written is None:
            return self._begin()
        generation = str(json.loads(written)["generation"])
        last = self._ticks.last(generation)
        if last is None:
            return generation
        position = {
            topic: {int(number): offset for number, offset in each.items()}
            for topic, each in last["position"].items()
        }
        if _is_ahead(position, self._checkpoint.position()):
            return self._begin()  # an older checkpoint was restored: what it has not read is to come
        self._times.position, self._written = position, last["time"]
        self._tracker.restore(last["kept"])
        return generation

    def _begin(self) -> str:
        generation = new_id()
        self._checkpoint.write(_GENERATION, json.dumps({"generation": generation}))
        return generation

    def _hear(self) -> None:
        reports = [self.reports.popleft() for _ in range(len(self.reports))]
        if self._times.hear(reports):
            self._stirred, self._silence = time.monotonic(), None

    def _catch_up(self) -> None:
        self._hear()
        self._times.catch_up(self._checkpoint.position())

    def _advance(self) -> None:
        now = time.monotonic()
        if now - self._times.new_at < _SETTLED or not self._times.position:
            return
        self._look_at_quiet(now)
        expected = self._expected()
        self._expected_since = (self._expected_since or now) if expected else None
        self._report_wait(now)
        if expected or self._is_unread():
            return
        unkept = now - self._kept_at > _KEPT_EVERY and self._ticks.position != self._times.position
        if self._tracker.advance(now) != self._written or unkept:
            self._tick(clock=False)

    def _look_at_quiet(self, now: float) -> None:
        """Let the watermark go on without quiet writers, as far as nothing older can come of them."""
        if now - self._looked_at < _LOOK_EVERY and not self._until_end:
            return
        self._looked_at = now
        self._holds.look(self._tracker.quiet(), self._tracker.without_quiet(now), self._times.position, now)
        self._tracker.allow(self._holds.allowed)
        if self._tracker.folded and not self._reported_many:
            self._reported_many = True
            self._report(f"its topics have more than {MOST:,} writers: of further ones, events may be late")

    def _expected(self) -> set[str]:
        """The flows upstream that have not brought all that waited when they were heard of."""
        return self._upstream.expected((topic, Writer.parse(name)) for topic, name in self._tracker.writers())

    def _is_unread(self) -> bool:
        """Whether something is unread of what flows upstream had brought when they were heard of."""
        made = {topic for topic, name in self._tracker.writers() if Writer.parse(name).flow}
        for topic in made - {*self._brought}:
            self._brought[topic] = self._broker.committed_end(topic)
        return _is_ahead(self._brought, self._times.position)

    def _report_wait(self, now: float) -> None:
        """Say it if the watermark is held for long: a flow upstream may have stopped, or be gone for good."""
        long_ago = now - _LONG
        if self._reported_at > long_ago:
            return
        reasons = self._holds.reasons(long_ago)
        if self._silence is not None:
            reasons |= self._silence.reasons(long_ago)
        if self._expected_since is not None and self._expected_since <= long_ago:
            reasons |= {f"what {flow} has not read yet" for flow in self._expected()}
        if reasons:
            self._reported_at = now
            self._report(
                f"its watermark waits for {', '.join(sorted(reasons))}; run the flow that is behind, or if "
                "it is gone for good, `penstock forget PIPELINE FLOW` (with `--namespace NAME` where it has "
                f"another one than {self._job.identity.namespace!r})"
            )

    def _follow(self, quiet: float) -> None:
        """Let the watermark follow the clock if for so long nothing has come, and nothing is on its way."""
        now = time.monotonic()
        if self._stirred is None or now - self._stirred < quiet or now - self._asked_at < _LOOK_EVERY:
            return
        self._asked_at = now
        self._silence = self._silence or self._new_holds()
        if self._is_on_its_way(self._silence, now):
            return
        self._stirred, self._silence = now, None
        self._tracker.follow(int(1_000_000 * (time.time() - (self._idle or 0.0))))
        self._tick(clock=True)

    def _is_on_its_way(self, silence: Holds, now: float) -> bool:
        """Whether a flow upstream has not read what was there when all fell silent, or we have not."""
        writers, position = self._tracker.writers(), self._times.position
        silence.look(writers, 0, position, now)
        ends = {topic: self._broker.committed_end(topic) for topic in self._times.topics}
        return _is_ahead(ends, position) or not writers <= {*silence.allowed}

    def _tick(self, *, clock: bool) -> None:
        reach("clock.tick", self._job.label)
        tick: JsonObject = {
            "generation": self._generation,
            "time": self._tracker.reached,
            "clock": clock,
            "position": self._times.position,
            "kept": self._tracker.to_dict(),
        }
        if self._ticks.write(tick):
            self._written, self._kept_at = self._tracker.reached, time.monotonic()


def _is_ahead(position: Offsets, other: Offsets) -> bool:
    return any(
        offset > other.get(topic, {}).get(number, 0)
        for topic, each in position.items()
        for number, offset in each.items()
    )
