"""The run: two sides into the log, a flow that joins them, and its results beside the truth."""

import time
from collections import deque
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from penstock.documents import JsonObject
from penstock.lab.checkpoint_files import CheckpointFiles
from penstock.lab.experiments.joins.beside import AsOf, Latest
from penstock.lab.experiments.joins.kind import Kind
from penstock.lab.experiments.joins.near import Near
from penstock.lab.experiments.joins.view import View
from penstock.lab.pipeline_process import PipelineProcess
from penstock.lab.topic_reader import TopicReader

if TYPE_CHECKING:
    from penstock.lab.run import Run

KINDS: dict[str, type[Kind]] = {
    "stream and stream, near in time": Near,
    "stream and table, the row of now": Latest,
    "stream and table, the row of then": AsOf,
    "table and table": View,
}
_TICK, _FRAME, _LOOK = 0.05, 0.12, 0.5  # seconds
_SPARK = {"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "true"}
_SOURCE = """from penstock.lab.experiments.joins.pipelines import {name}

declared = {name}({prefix!r}, {reach!r})
"""


def work(run: "Run") -> None:
    """Join until the time is over."""
    prefix, reach = run.name(""), run.value("reach")
    kind = KINDS[run.value("kind")](prefix, timedelta(seconds=reach))
    run.topics(*kind.topics)
    source = _SOURCE.format(name=kind.pipeline, prefix=prefix, reach=f"{reach:g} seconds")
    process = PipelineProcess(run, "joins", source, spark=_SPARK)
    process.start()
    run.report("started: Spark takes the longest")
    _Work(run, kind, process).go_on()


@dataclass
class _Work:
    run: "Run"
    kind: Kind
    process: PipelineProcess
    counts: JsonObject = field(default_factory=dict)
    state: JsonObject = field(default_factory=dict)
    history: deque[int] = field(default_factory=lambda: deque(maxlen=120))  # rows of state, one for a batch
    looked: float = 0.0
    first: float | None = None

    def __post_init__(self) -> None:
        self.producer = self.run.cleanup.enter_context(self.run.producer())
        self.results = TopicReader(self.run, self.kind.topics[-1].name, self.kind.take_all)
        self.files = CheckpointFiles(self.process.checkpoint("joined"))

    def go_on(self) -> None:
        due, last, shown = 0.0, time.monotonic(), 0.0
        while True:  # until RunOver
            now = time.monotonic()
            due, last = due + self.run.value("rate") * min(now - last, 1.0), now
            self.kind.send(self.producer, int(due))
            due -= int(due)
            if now - shown > _FRAME:
                shown = now
                self.show()
            self.run.rest(_TICK)

    def show(self) -> None:
        self.process.check()
        self.results.background.check()
        if self.first is None and self.files.committed is not None:
            self.first = round(self.run.elapsed, 1)
            self.run.report(f"the first batch is committed after {self.first:.0f} s")
        if time.monotonic() - self.looked > _LOOK:
            self.looked = time.monotonic()
            self.look()
        shown = self.kind.shown
        self.run.flow([shown.popleft() for _ in range(len(shown))])
        self.run.show(
            **self.counts,
            **self.state,
            join=self.kind.pipeline,
            process="starting" if self.first is None else "working",
            now=self.kind.second(self.kind.began + timedelta(seconds=self.run.elapsed)),
            state_history=[*self.history],
        )

    def look(self) -> None:
        """Compare with the truth, and read what Spark has reported of its last batch."""
        self.counts = self.kind.figures()
        reports = self.process.recent("joined", 1)
        if not reports:
            return
        last = reports[0]
        operators = last.details.get("stateOperators", [])
        rows = sum(each.get("numRowsTotal", 0) for each in operators)
        if last.batch != self.state.get("batch"):
            self.history.append(rows)
        self.state = {
            "batch": last.batch,
            "batch_seconds": last.seconds,
            "state_rows": rows,
            "state_bytes": sum(each.get("memoryUsedBytes", 0) for each in operators),
            "late": sum(each.get("numRowsDroppedByWatermark", 0) for each in operators),
            "watermark": last.watermark,
        }
