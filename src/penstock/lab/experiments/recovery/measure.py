"""What a checkpoint interval costs, and what it spares after a kill: both measured, for each start."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.documents import JsonObject
from penstock.lab.checkpoint_files import CheckpointFiles
from penstock.lab.pipeline_process import PipelineProcess

_BATCHES = 200
_LEAST = 10.0  # seconds, before which costs say little


@dataclass
class Measure:
    """One life of the process, from its start to its kill.

    `target` is where the log ended when it began, `since` when the process before it was killed, or when this
    one was started. `first` is when a batch was committed, `caught_up` when all up to the target was: both in
    seconds from `since`.
    """

    process: PipelineProcess
    flows: tuple[str, ...]
    topic: str
    interval: float
    target: Mapping[int, int]
    is_recovery: bool
    since: float = field(default_factory=time.monotonic)
    first: float | None = None
    caught_up: float | None = None
    _before: dict[str, int | None] = field(default_factory=dict)
    _steady: tuple[float, float] | None = None  # when it had caught up: the moment, and CPU seconds then

    def __post_init__(self) -> None:
        self._before = {flow: self._files(flow).committed for flow in self.flows}

    def look(self) -> None:
        """Note what has been reached."""
        now = time.monotonic()
        if self.first is None and any(self._has_committed(each) for each in self.flows):
            self.first = now - self.since
        if self.first is not None and self.caught_up is None and all(map(self._covers, self.flows)):
            self.caught_up = now - self.since
            self._steady = now, self.process.cpu_seconds()

    def figures(self) -> JsonObject:
        """What is known so far; `overhead` is planning and checkpoints, in seconds of each minute."""
        return {
            "interval": self.interval,
            "is_recovery": self.is_recovery,
            "first": _rounded(self.first),
            "caught_up": _rounded(self.caught_up),
            **self._costs(),
        }

    def _costs(self) -> JsonObject:
        seconds = 0.0 if self._steady is None else time.monotonic() - self._steady[0]
        if self._steady is None or seconds < _LEAST:
            return {"batches_a_minute": None, "overhead": None, "cpu": None}
        reports = [each for flow in self.flows for each in self._reports(flow, seconds)]
        beside = sum(map(_overhead, reports))
        return {
            "batches_a_minute": round(60 * len(reports) / seconds / len(self.flows), 1),
            "overhead": round(60 * beside / seconds / len(self.flows), 2),
            "cpu": round(60 * (self.process.cpu_seconds() - self._steady[1]) / seconds, 1),
        }

    def _reports(self, flow: str, seconds: float) -> list[JsonObject]:
        since = time.time() - seconds
        found = self.process.recent(flow, _BATCHES)
        return [each.details for each in found if datetime.fromisoformat(each.at).timestamp() >= since]

    def _has_committed(self, flow: str) -> bool:
        return self._files(flow).committed != self._before[flow]

    def _covers(self, flow: str) -> bool:
        files = self._files(flow)
        reached = files.end(files.committed).get(self.topic, {})
        return all(reached.get(partition, 0) >= end for partition, end in self.target.items())

    def _files(self, flow: str) -> CheckpointFiles:
        return CheckpointFiles(self.process.checkpoint(flow))


def _overhead(report: JsonObject) -> float:
    took = report.get("durationMs", {})
    return float(max(0, took.get("triggerExecution", 0) - took.get("addBatch", 0))) / 1000


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)
