"""The figures of a flow's batches since it was started, thinned out to what is worth keeping."""

import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime

from penstock.documents import JsonObject
from penstock.pipeline.bottleneck import PARTS, bottleneck, parts, waiting
from penstock.pipeline.flow_status import APART, KEPT, LatencyHistogram, Sample
from penstock.pipeline.latency import Latencies
from penstock.pipeline.plan import MALFORMED


@dataclass
class BatchHistory:
    """Takes in Spark's reports in one thread, and is looked at from others.

    `counts_rows` says whether Spark counts the rows of state; if not, its reports have 0.
    """

    counts_rows: bool = True
    batches: int = 0
    rows: int = 0
    late: int = 0
    malformed: int = 0
    phases: dict[str, float] = field(default_factory=dict)
    bottleneck: str = ""
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=KEPT))
    _before: deque[LatencyHistogram] = field(default_factory=lambda: deque(maxlen=KEPT))  # each sample
    _latencies: Latencies = field(default_factory=Latencies)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, report: JsonObject, now: float | None = None) -> None:
        """Take the report of a batch in."""
        observed = _observed(report)
        with self._lock:
            self.batches += 1
            self.malformed += sum(each.get("malformed") or 0 for each in observed)
            self.phases = {name: took / 1000 for name, took in report.get("durationMs", {}).items()}
            found = bottleneck(report)
            self.bottleneck = "" if found is None else str(found)
            at = time.time() if now is None else now
            sample = _sample(report, at, self.counts_rows)
            self.rows, self.late = self.rows + sample.rows, self.late + sample.late
            before = self._latencies.histogram
            self._latencies.add(observed, sample.seconds, at)
            self._keep(sample, before)

    @property
    def latency(self) -> LatencyHistogram:
        with self._lock:
            return self._latencies.histogram

    @property
    def recent(self) -> LatencyHistogram:
        """The latency of the events of the samples that are kept."""
        with self._lock:
            now = self._latencies.histogram
            return now.since(self._before[0]) if self._before else now

    def kept(self) -> tuple[Sample, ...]:
        with self._lock:
            return tuple(self.samples)

    def _keep(self, sample: Sample, latency: LatencyHistogram) -> None:
        """The last batch is always kept, those before it if they are far enough from each other."""
        before = self.samples[-2].at if len(self.samples) > 1 else float("-inf")
        if self.samples and self.samples[-1].at - before < APART:
            last, latency = self.samples.pop(), self._before.pop()
            sample = replace(sample, rows=sample.rows + last.rows, late=sample.late + last.late)
        self.samples.append(sample)
        self._before.append(latency)


def _observed(report: JsonObject) -> list[JsonObject]:
    """What was observed of each topic that is read."""
    found = report.get("observedMetrics", {}).items()
    return [each for name, each in found if name.startswith(MALFORMED)]


def _sample(report: JsonObject, now: float, counts_rows: bool) -> Sample:
    times, operators = report.get("eventTime", {}), report.get("stateOperators", ())
    took = parts(report) or dict.fromkeys(PARTS, 0.0)
    rows = sum(each.get("numRowsTotal", 0) for each in operators)
    return Sample(
        at=now,
        batch=report["batchId"],
        rows=report["numInputRows"],
        seconds=report.get("batchDuration", 0) / 1000,
        behind=sum(map(waiting, report["sources"])),
        watermark=_moment(times.get("watermark")),
        newest=_moment(times.get("max")),
        late=sum(each.get("numRowsDroppedByWatermark", 0) for each in operators),
        state_rows=rows if rows or counts_rows or not operators else None,
        state_bytes=sum(each.get("memoryUsedBytes", 0) for each in operators),
        state_ms=took["state"],
        sink_ms=took["sink"],
        overhead_ms=took["overhead"],
    )


def _moment(text: str | None) -> float | None:
    """A time of Spark's; at the beginning of all time it stands for none."""
    found = None if text is None else datetime.fromisoformat(text).timestamp()
    return found or None
