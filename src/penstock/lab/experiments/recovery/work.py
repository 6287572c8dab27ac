"""The run: events in, the flows in a process that is killed and started again, and what comes out."""

import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.documents import JsonObject
from penstock.errors import FlowError
from penstock.lab.checkpoint_files import CheckpointFiles
from penstock.lab.experiments.recovery.crash import Crash
from penstock.lab.experiments.recovery.measure import Measure
from penstock.lab.experiments.recovery.pipelines import (
    STEPS,
    events_of,
    flow_of,
    most_of,
    results_of,
)
from penstock.lab.experiments.recovery.sender import Sender
from penstock.lab.experiments.recovery.track import Track
from penstock.lab.pipeline_process import PipelineProcess
from penstock.lab.topic_reader import TopicReader
from penstock.log import Broker, Topic
from penstock.log.message import Received

if TYPE_CHECKING:
    from penstock.lab.run import Run

THREE, CHAINED = "three guarantees", "three stateful steps"
_TICK, _FRAME = 0.05, 0.12  # seconds
_STRIP, _DRAWN_RATE = 160, 12  # events that are drawn: how many, and how many of a second
_REPEATS = 20
_AT_FIRST = 4
_PATIENCE = 20.0  # seconds, besides an interval, in which flows come to their points
_SPARK = {
    "spark.master": "local[4]",  # a flow that is held must not take the last task slot
    "spark.sql.shuffle.partitions": "1",  # there is little to do, and Python starts a process for each
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "true",
}
_SOURCE = """from penstock.lab.experiments.recovery.pipelines import {name}

declared = {name}({prefix!r}, {interval!r})
"""


@dataclass(frozen=True)
class Subject:
    """What is killed: a pipeline, its flows with their results, and the points at which they are held."""

    pipeline: str
    flows: Mapping[str, tuple[str, Topic[Any]]]  # the name of each, and its topic, by what it is shown as
    points: Mapping[str, str]  # by flow
    watched: str | None = None  # what writes without a point of ours: it is killed when results appear


def _subject(run: "Run") -> Subject:
    prefix = run.name("")
    if run.value("subject") == CHAINED:
        return Subject("steps", {"steps": ("chained", most_of(prefix))}, {"chained": "flow.written"})
    flows = {name: (flow_of(name), topic) for name, topic in results_of(prefix).items()}
    points = {flow_of(name): "sink.kafka.committed" for name in ("at-most-once", "exactly-once")}
    return Subject("guarantees", flows, points, "at-least-once")


def work(run: "Run") -> None:
    """Run the flows, and kill them as often as somebody wants to."""
    _Work(run, _subject(run)).go_on()


@dataclass
class _Work:
    run: "Run"
    subject: Subject
    kills: int = 0
    lives: list[JsonObject] = field(default_factory=list)
    shown: deque[JsonObject] = field(default_factory=deque)
    numbers: list[int] = field(default_factory=list)  # events that are drawn, over the whole of the log
    measure: Measure | None = None
    started: float = 0.0

    def __post_init__(self) -> None:
        run, subject = self.run, self.subject
        self.sample = max(1, round(run.value("rate") / _DRAWN_RATE))
        self.events = events_of(run.name(""))
        run.topics(self.events, *(topic for _, topic in subject.flows.values()))
        self.crash = Crash()
        run.cleanup.callback(self.crash.close)
        self.process = PipelineProcess(
            run, subject.pipeline, self.source(), spark=_SPARK, environment=self.crash.environment
        )
        self.tracks = {name: self.track(name, *flow) for name, flow in subject.flows.items()}
        self.reader = TopicReader(run, self.events.name, self.take)
        repeats = _REPEATS if subject.pipeline == "steps" else None
        self.sender = Sender(run, self.events, self.rate, repeats)

    def rate(self) -> float:
        """Events a second: fewer while Spark starts for the first time, and nobody reads."""
        is_first = not self.lives and (self.measure is None or self.measure.first is None)
        return float(self.run.value("rate")) / (_AT_FIRST if is_first else 1)

    def track(self, name: str, flow: str, topic: Topic[Any]) -> Track:
        files = CheckpointFiles(self.process.checkpoint(flow))
        return Track(self.run, name, topic.name, self.events.name, files, self.sample)

    @property
    def flows(self) -> tuple[str, ...]:
        return tuple(flow for flow, _ in self.subject.flows.values())

    def source(self) -> str:
        interval = f"{self.run.value('interval')} seconds"
        return _SOURCE.format(name=self.subject.pipeline, prefix=self.run.name(""), interval=interval)

    def take(self, messages: list[Received]) -> None:
        """Note what stands in the log; it is the truth for all flows."""
        places = [
            (each.partition(), each.offset(), json.loads(each.value() or b"{}")["n"]) for each in messages
        ]
        for track in self.tracks.values():
            track.tally.add_sent(places)
        for partition, _, n in places:
            if n % self.sample == 0 and n not in self.numbers:
                self.numbers.append(n)
                self.shown.append({"kind": "in", "n": n, "partition": partition})
        if len(self.numbers) >= _STRIP:
            self.thin_out()

    def thin_out(self) -> None:
        """Draw one of twice as many events from now on: what was lost long ago stays in the picture."""
        self.sample *= 2
        for track in self.tracks.values():
            track.sample = self.sample
        self.numbers = [n for n in self.numbers if n % self.sample == 0]

    def go_on(self) -> None:
        self.start()
        shown = 0.0
        while True:  # until RunOver
            if self.run.pressed("kill"):
                self.kill("at a moment of chance")
            if self.run.pressed("kill_in_batch"):
                self.kill_in_batch()
            if time.monotonic() - shown > _FRAME:
                shown = time.monotonic()
                self.show()
            self.run.rest(_TICK)

    def start(self, killed: float | None = None) -> None:
        """Start the process, with the interval as it is set now."""
        ends = {
            number: end for number, (_, end) in Broker(self.run.settings).offsets(self.events.name).items()
        }
        interval = float(self.run.value("interval"))
        self.process.declare(self.source())
        self.measure = Measure(
            self.process,
            self.flows,
            self.events.name,
            interval,
            ends,
            killed is not None,
            killed or time.monotonic(),
        )
        self.process.start()
        self.started = time.monotonic()
        self.run.report(f"started, with a checkpoint every {interval:g} s: Spark takes the longest")

    def kill(self, where: str) -> None:
        """Kill the driver, its JVM and its workers, and start them again."""
        if self.measure is not None:
            self.lives.append(self.measure.figures())
        killed = time.monotonic()
        self.process.kill()
        self.kills += 1
        self.shown.append({"kind": "kill", "number": self.kills})
        self.run.report(f"kill -9, {where}")
        self.crash.disarm()
        self.start(killed)

    def kill_in_batch(self) -> None:
        """Kill when all flows are where a crash hurts: between their results and their checkpoint."""
        while self.measure is None or self.measure.first is None:
            self.look_on()
        labels = {self.process.identity(flow).label: point for flow, point in self.subject.points.items()}
        self.crash.arm(labels)
        self.run.report("waits until each flow is between its results and its checkpoint")
        deadline = time.monotonic() + float(self.run.value("interval")) + _PATIENCE
        while self.crash.missing and time.monotonic() < deadline:
            self.look_on()
        missing = sorted(self.crash.missing)
        if self.subject.watched is not None:
            self.await_results(self.tracks[self.subject.watched], deadline)
        self.kill(f"{', '.join(missing)} not there" if missing else "in the middle of a batch")

    def await_results(self, track: Track, deadline: float) -> None:
        """Wait for results of a batch that is not committed: Spark's own writer has no point of ours."""
        before = track.reader.count
        while track.reader.count == before and time.monotonic() < deadline:
            self.run.rest(0.005)

    def look_on(self) -> None:
        self.show()
        self.run.rest(_TICK)

    def show(self) -> None:
        self.process.check()
        self.reader.background.check()
        self.sender.background.check()
        if self.measure is not None:
            self.measure.look()
        for track in self.tracks.values():
            track.look()
            self.run.flow(_drained(track.shown))
        self.run.flow(_drained(self.shown))
        self.run.show(**self.figures())

    def figures(self) -> JsonObject:
        if self.measure is None:
            raise FlowError("nothing was started")
        numbers = [*self.numbers]
        tracks = {name: each.figures() for name, each in self.tracks.items()}
        flat = {
            f"{name.replace('-', '_')}_{key}": value
            for name, each in tracks.items()
            for key, value in each.items()
        }
        state = "starting" if self.measure.first is None else "working"
        return {
            "subject": self.subject.pipeline,
            "sent": self.reader.count,
            "kills": self.kills,
            "process": state if self.process.driver.alive else "dead",
            "since_start": round(time.monotonic() - self.started, 1),
            "lives": [*self.lives, self.measure.figures()],
            "sample": self.sample,
            "numbers": numbers,
            "strips": {name: each.strip(numbers) for name, each in self.tracks.items()},
            "steps": self.steps(),
            **flat,
        }

    def steps(self) -> list[JsonObject]:
        """Each stateful step, the version of its state that is saved, and its rows; batch N makes N + 1."""
        if self.subject.pipeline != "steps":
            return []
        track = self.tracks["steps"]
        versions = track.files.state_versions(len(STEPS))
        reports = self.process.recent("chained", 1)
        operators = reports[0].details.get("stateOperators", []) if reports else []
        rows = [each.get("numRowsTotal") for each in reversed(operators)] or [None] * len(STEPS)
        return [
            {"step": name, "version": version, "rows": count}
            for name, version, count in zip(STEPS, versions, rows, strict=False)
        ]


def _drained(shown: deque[JsonObject]) -> list[JsonObject]:
    """Take what is there; readers may add more meanwhile."""
    return [shown.popleft() for _ in range(len(shown))]
