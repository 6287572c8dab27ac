"""The flow at work: its process, its results, its side output and its watermark."""

from datetime import datetime, timedelta

import msgspec

from penstock.documents import JsonObject
from penstock.lab.experiments.windows.pipeline import Shape
from penstock.lab.experiments.windows.tally import Key, Tally, Window
from penstock.lab.experiments.windows.views import Counted, View, counted_of, late_of
from penstock.lab.pipeline_process import PipelineProcess
from penstock.lab.run import Run
from penstock.lab.topic_reader import TopicReader
from penstock.log.message import Received

_SOURCE = """from penstock.lab.experiments.windows.pipeline import Shape, windowed

declared = windowed({prefix!r}, {shape!r})
"""
_MICROSECOND = timedelta(microseconds=1)


class WindowedFlow:
    """Runs the flow on Spark, and enters what it emits into the tally."""

    def __init__(self, run: Run, shape: Shape, tally: Tally, began: datetime) -> None:
        self.side = 0
        self._run, self._tally, self._began = run, tally, began
        self._is_sliding = shape.kind == "sliding"
        prefix = run.name("")
        self._results, self._late = counted_of(prefix), late_of(prefix)
        run.topics(self._results, self._late)
        source = _SOURCE.format(prefix=prefix, shape=shape)
        self._process = PipelineProcess(run, "windows", source)
        self._process.start()
        self._watermark: float | None = None
        self._has_begun = False
        self._readers = [
            TopicReader(run, self._results.name, self._take_results),
            TopicReader(run, self._late.name, self._take_late),
        ]

    @property
    def watermark(self) -> float | None:
        """The flow's watermark in seconds since the beginning, None until it has one."""
        return self._watermark

    def look(self) -> JsonObject:
        """Read what Spark has reported last; raises if the flow has ended."""
        self._process.check()
        for each in self._readers:
            each.background.check()
        reports = self._process.recent("counted", 1)
        if reports and not self._has_begun:
            self._has_begun = True
            self._run.report(f"Spark has started: the first batch came after {self._run.elapsed:.0f} s")
        if reports and reports[0].watermark:
            at = datetime.fromisoformat(reports[0].watermark.replace("Z", "+00:00"))
            found = (at - self._began).total_seconds()
            self._watermark = found if found > 0 else None  # Spark's first one is of 1970
        return {
            "process": "working" if self._has_begun else "starting",
            "watermark": None if self._watermark is None else round(self._watermark, 2),
            "side": self.side,
        }

    def _take_results(self, messages: list[Received]) -> None:
        codec = self._results.codec(None)
        events, _ = codec.decode_all([each.value() for each in messages])
        for event in events:
            if event is not None:
                self._enter(event)

    def _enter(self, event: Counted) -> None:
        start, end = self._micros(event.start), self._micros(event.end)
        key: Key = (event.user, event.n if self._is_sliding and event.n is not None else start)
        self._tally.emit(key, Window(end, event.user, start, event.kind, event.rows))
        shown = {
            "kind": "result",
            "user": event.user,
            "end": end / 1e6,
            "rows": event.rows,
            "what": event.kind,
        }
        self._run.flow([shown])

    def _take_late(self, messages: list[Received]) -> None:
        for each in messages:
            view = msgspec.json.decode(each.value() or b"{}")
            self._run.flow([{"kind": "side", "user": view["user"], "n": view["n"]}])
        self.side += len(messages)

    def _micros(self, at: datetime) -> int:
        return (at - self._began) // _MICROSECOND


def event_of(user: str, n: int, at: float, began: datetime) -> View:
    """Return a view of so many seconds after the beginning."""
    return View(user, n, began + timedelta(microseconds=round(at * 1e6)))
