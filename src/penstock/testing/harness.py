"""The crash harness: kills a pipeline with -9 at each of its crash points, and verifies its results."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from penstock.errors import FlowError
from penstock.log import Topic
from penstock.pipeline import Account, Flow, Pipeline, verify
from penstock.settings import Settings
from penstock.testing.driver import Driver, wait_until_caught_up
from penstock.testing.listener import PointListener

_FLOW_POINTS = ("flow.planned", "flow.written", "flow.committed")
_KAFKA_POINTS = ("opened", "sent", "committed", "written")
_POSTGRES_POINTS = ("opened", "staged", "before-merge", "merged", "committed")
Feed = Callable[[int], None]


@dataclass
class Report:
    """Where the pipeline was killed, and the accounts of its flows at the end."""

    kills: list[dict[str, str]] = field(default_factory=list)
    accounts: list[Account] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing was lost and nothing was written twice."""
        return all(account.sound for account in self.accounts)


def points_of(flow: Flow) -> list[str]:
    """Return the points that every batch of a flow passes, in order."""
    kind, names = (
        ("kafka", _KAFKA_POINTS) if isinstance(flow.writes, Topic) else ("postgres", _POSTGRES_POINTS)
    )
    first, *rest = _FLOW_POINTS
    return [first, *(f"sink.{kind}.{name}" for name in names), *rest]


class CrashHarness:
    """Runs a pipeline as a process, kills it at its crash points, lets it go on, and verifies.

        harness = CrashHarness(shop, "shop.py", settings, feed=send_some_orders)
        report = harness.run(spark)
        assert report.sound

    `feed(round)` sends events that every flow has something to do with; it is called before each kill and
    once at the end. In each round every flow is held at one of its points, and when all of them are, the
    whole process is killed: as many kills as the longest way through a batch has points.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        module: str,
        settings: Settings,
        *,
        feed: Feed,
        options: tuple[str, ...] = (),
        timeout: float = 120,
    ) -> None:
        self._pipeline = pipeline
        self._settings = settings
        self._feed = feed
        self._timeout = timeout
        self._held = threading.Condition()
        self._armed: dict[str, str] = {}
        self._reached: dict[str, str] = {}
        self._listener = PointListener(self._decide)
        self.driver = Driver(
            pipeline.name, module, settings, options=options, environment=self._listener.environment
        )

    def run(self, spark: SparkSession, rounds: list[Mapping[str, str]] | None = None) -> Report:
        """Kill once for each round, then let the pipeline finish and compare it with the log."""
        report = Report()
        try:
            for number, points in enumerate(rounds or self.rounds()):
                report.kills.append(self.kill_at(points, number))
            self.finish()
        finally:
            self.close()
        report.accounts = verify(self._pipeline, self._settings, spark)
        return report

    def rounds(self) -> list[Mapping[str, str]]:
        """Return, round by round, the point at which each flow is held: all of their points in turn."""
        ways = {name: points_of(flow) for name, flow in self._pipeline.flows.items()}
        longest = max(len(way) for way in ways.values())
        return [{name: way[number % len(way)] for name, way in ways.items()} for number in range(longest)]

    def kill_at(self, points: Mapping[str, str], number: int = 0) -> dict[str, str]:
        """Hold each flow at its point, then kill the process; return where the flows were."""
        with self._held:
            self._armed = {f"{self._pipeline.name}.{name}": point for name, point in points.items()}
            self._reached = {}
        if not self.driver.alive:
            self.driver.start()
        self._feed(number)
        with self._held:
            if not self._held.wait_for(lambda: self._reached.keys() == self._armed.keys(), self._timeout):
                waiting = sorted(self._armed.keys() - self._reached.keys())
                raise FlowError(
                    f"{', '.join(waiting)} did not come to {[self._armed[each] for each in waiting]}",
                    hint=f"see {self.driver.log}",
                )
            self._armed = {}
        self.driver.kill()
        return dict(self._reached)

    def finish(self) -> None:
        """Let the pipeline work on all that is left, and stop it."""
        if not self.driver.alive:
            self.driver.start()
        self._feed(-1)
        wait_until_caught_up(self._pipeline, self._settings, self._timeout)
        self.driver.stop()

    def close(self) -> None:
        self.driver.kill()
        self._listener.close()

    def _decide(self, point: str, subject: str) -> bool:
        with self._held:
            if self._armed.get(subject) != point:
                return False
            self._reached[subject] = point
            self._held.notify_all()
            return True
