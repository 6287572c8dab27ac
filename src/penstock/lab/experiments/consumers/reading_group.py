"""A group of the experiment: a consumer in a process of its own, its place, and its orders."""

from collections.abc import Callable, Sequence

from penstock.documents import JsonObject
from penstock.lab.experiments.consumers.stream import Stream
from penstock.lab.run import Run
from penstock.lab.worker import Worker

_MODULE = "penstock.lab.experiments.consumers.reader"
_SMOOTHED = 0.3  # how much a new measurement of the rate counts


class ReadingGroup:
    """Reads at the speed of its slider; `heard` is called with the latencies of live events."""

    def __init__(self, run: Run, name: str, stream: Stream, heard: Callable[[Sequence[float]], None]) -> None:
        self.name, self.group = name, run.group(name)
        self.position, self.rate, self.is_replaying = 0, 0.0, False
        self._run, self._heard = run, heard
        self._replayed_until, self._seeks, self._seeks_before = 0, 0, 0
        self._last: tuple[float, int] | None = None
        self._speed = self.speed
        orders = {
            "topic": stream.topic.name,
            "group": self.group,
            "speed": self._speed,
            "first_live": stream.count,
        }
        self.process = Worker(_MODULE, orders, run, self._hear)

    @property
    def speed(self) -> float:
        """Events a second: those of its slider, or of a replay's."""
        return float(self._run.value("replay_speed" if self.is_replaying else self.name))

    def steer(self) -> None:
        """Send it its speed when that has changed; a replay is over at what was the end."""
        self.process.check()
        if self.is_replaying and self._seeks > self._seeks_before and self.position >= self._replayed_until:
            self.is_replaying = False
            self._run.report(f"the {self.name} group has replayed up to offset {self._replayed_until:,}")
        if self.speed != self._speed:
            self._speed = self.speed
            self.process.send({"speed": self._speed})

    def replay(self, end: int) -> None:
        """Read again from the beginning, up to what is the end now."""
        self._replayed_until, self._seeks_before, self.is_replaying = end, self._seeks, True
        self.process.send({"seek": 0})
        self._run.report(f"the {self.name} group seeks from offset {self.position:,} to 0, to read {end:,}")

    def skip(self, end: int) -> None:
        """Go on at the end; what lies between is not read."""
        self.is_replaying = False
        self.process.send({"seek": end})
        self._run.report(f"the {self.name} group seeks to the end, offset {end:,}")

    def figures(self, end: int) -> JsonObject:
        """What is shown of it."""
        return {
            self.name: self.position,
            f"{self.name}_lag": max(0, end - self.position),
            f"{self.name}_rate": round(self.rate),
        }

    def _hear(self, line: JsonObject) -> None:
        now, last = line["at"], self._last
        if last is not None and now > last[0]:
            self.rate += _SMOOTHED * ((line["read"] - last[1]) / (now - last[0]) - self.rate)
        self._last = now, line["read"]
        self._seeks, self.position = line["seeks"], line["position"]
        if line["latencies"]:
            self._heard(line["latencies"])
        self._run.flow([{"kind": "read", "reader": self.name, "offset": self.position}])
