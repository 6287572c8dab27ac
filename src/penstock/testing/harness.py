"""The crash harness: kills a pipeline with -9 at each of its crash points, and verifies its results."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log import Broker
from penstock.pipeline import Pipeline, Verification, verify
from penstock.settings import Settings
from penstock.testing.crash_points import RESULTS, points_of, results_of
from penstock.testing.driver import Driver, wait_until_caught_up
from penstock.testing.listener import PointListener

_TICK, _REPORT_EVERY = 0.2, 10.0  # seconds
Feed = Callable[[int], None]
Reporter = Callable[[str], None]


@dataclass
class Report:
    """Where the pipeline was killed, and the verifications of its flows at the end."""

    kills: list[dict[str, str]] = field(default_factory=list)
    verifications: list[Verification] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was lost and nothing was written twice."""
        return all(verification.ok for verification in self.verifications)


class CrashHarness:
    """Runs a pipeline as a process, kills it at its crash points, lets it go on, and verifies.

        def send_some_orders(round: int) -> None:
            with Producer(settings) as producer:
                producer.send_all(orders, make_orders(100, seed=round))

        harness = CrashHarness(shop, "shop.py", settings, feed=send_some_orders)
        report = harness.run(spark)
        assert report.ok, report.verifications

    `feed(round)` sends events that every flow has something to do with; it is called before each kill and
    once at the end. In each round every flow is held at one of its points, and when all of them are, the
    whole process is killed: as many kills as the longest way through a batch has points. Each takes about as
    long as the pipeline's start, and `report` gets how far it has come. `timeout` is how long, in seconds,
    the flows may take to reach their points, and at the end to catch up.
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
        report: Reporter = print,
    ) -> None:
        _refuse_replays(pipeline)
        self._pipeline = pipeline
        self._settings = settings
        self._feed = feed
        self._timeout = timeout
        self._report = report
        self._held = threading.Condition()
        self._armed: dict[str, str] = {}
        self._reached: dict[str, str] = {}
        self._listener = PointListener(self._decide)
        self.driver = Driver(
            pipeline.name, module, settings, options=options, environment=self._listener.environment
        )

    def run(self, spark: SparkSession, rounds: list[Mapping[str, str]] | None = None) -> Report:
        """Kill once for each round, then let the pipeline finish and compare it with the log."""
        found, planned = Report(), rounds or self.rounds()
        try:
            for number, points in enumerate(planned):
                self._report(f"round {number + 1} of {len(planned)}: {_listed(points)}")
                found.kills.append(self.kill_at(points, number))
            self.finish()
        finally:
            self.close()
        self._report("verifies what was written")
        found.verifications = verify(
            self._pipeline, self._settings, spark, report=lambda flow, what: self._report(f"{flow} {what}")
        )
        self._report(
            "nothing is lost, nothing doubled" if found.ok else "the target is not what it should be"
        )
        return found

    def rounds(self) -> list[Mapping[str, str]]:
        """Return, round by round, the point at which each flow is held: all of their points in turn."""
        ways = {name: points_of(flow) for name, flow in self._pipeline.flows.items()}
        longest = max(len(way) for way in ways.values())
        return [{name: way[number % len(way)] for name, way in ways.items()} for number in range(longest)]

    def kill_at(self, points: Mapping[str, str], number: int = 0) -> dict[str, str]:
        """Hold each flow at its point, then kill the process; return where the flows were."""
        with self._held:
            self._armed = {self._label(name): point for name, point in points.items()}
            self._reached = {}
        before = self._results(points)
        if not self.driver.alive:
            self.driver.start()
        self._feed(number)
        self._wait_until_held(before)
        with self._held:
            self._armed = {}
        self.driver.kill()
        self._report("killed")
        return dict(self._reached)

    def finish(self) -> None:
        """Let the pipeline work on all that is left, and stop it."""
        self._report("lets the pipeline work on what is left")
        if not self.driver.alive:
            self.driver.start()
        self._feed(-1)
        wait_until_caught_up(self._pipeline, self._settings, self._timeout)
        self.driver.stop()

    def close(self) -> None:
        self.driver.kill()
        self._listener.close()

    def _wait_until_held(self, before: Mapping[str, int]) -> None:
        """Wait for all points, and report now and then for which; a process that has ended reaches none."""
        began = reported = time.monotonic()
        while missing := self._missing(before):
            if not self.driver.alive:
                raise FlowError(
                    f"the pipeline ended before {_listed(missing)}", hint=self.driver.last_words()
                )
            if time.monotonic() > began + self._timeout:
                raise FlowError(
                    f"after {self._timeout:.0f} s, still not: {_listed(missing)}",
                    hint=f"see {self.driver.log}",
                )
            if time.monotonic() > reported + _REPORT_EVERY:
                reported = time.monotonic()
                self._report(f"waits for {_listed(missing)}")

    def _missing(self, before: Mapping[str, int]) -> dict[str, str]:
        """The points that are not reached after a moment; results are looked for from here."""
        for name, amount in self._results(before).items():
            if amount > before[name]:
                self._decide(RESULTS, self._label(name))
        with self._held:
            self._held.wait_for(lambda: self._reached.keys() == self._armed.keys(), _TICK)
            return {name: self._armed[name] for name in sorted(self._armed.keys() - self._reached.keys())}

    def _results(self, names: Mapping[str, object]) -> dict[str, int]:
        """How much there is in the topics of the flows that are held by their results."""
        broker, armed = Broker(self._settings), self._armed
        flows = [self._pipeline.flows[name] for name in names if armed.get(self._label(name)) == RESULTS]
        return {flow.name: results_of(flow, broker) for flow in flows}

    def _label(self, flow: str) -> str:
        return Identity.of(self._settings.namespace, self._pipeline.name, flow).label

    def _decide(self, point: str, subject: str) -> bool:
        with self._held:
            if self._armed.get(subject) != point:
                return False
            self._reached[subject] = point
            self._held.notify_all()
            return True


def _refuse_replays(pipeline: Pipeline) -> None:
    over = [flow.name for flow in pipeline.flows.values() if flow.mode == "replay"]
    if over:
        raise FlowError(
            f"flow {over[0]!r} of {pipeline.name!r} is a replay, which ends by itself",
            hint="let the harness run it in stream mode",
        )


def _listed(points: Mapping[str, str]) -> str:
    return ", ".join(f"{name} at {point}" for name, point in points.items())
