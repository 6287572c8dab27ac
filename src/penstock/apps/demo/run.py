"""A demo at work: traffic at a rate, all processes killed with -9 on the way, the results checked."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from importlib import import_module
from math import inf

from penstock.apps.demo.demo import Demo, Plan
from penstock.apps.demo.report import Report
from penstock.apps.demo.sender import send_for, send_until
from penstock.apps.demo.status import RunStatus
from penstock.apps.demo.work import Process, Work
from penstock.errors import InternalError
from penstock.identity import Identity
from penstock.local import installed, running
from penstock.log import Groups
from penstock.pipeline import Pipeline
from penstock.settings import Settings
from penstock.testing import Driver
from penstock.testing.driver import wait_until_caught_up

# For processes that live a minute: compiling for years takes the two cores that they need.
QUICK = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m",
    "spark.sql.shuffle.partitions": "2",
}
_AT_FIRST = 4  # a fraction of the rate: nobody reads while Spark starts
_LOOK = 0.5  # seconds: asking for positions takes some time


def run_alone(demo: Demo, plan: Plan, status: RunStatus) -> Report:
    """Run a demo on services of its own, which are gone at the end."""
    with running(services=installed(demo.services)) as settings:
        report = run(demo, plan, status, settings)
        status.enter("stop")
    return report


def run(demo: Demo, plan: Plan, status: RunStatus, settings: Settings) -> Report:
    """Run a demo for a bounded time, and report what came of it; nothing runs when it returns."""
    pipeline, make_work = _imported(demo)
    with ExitStack() as stack:
        work = make_work(settings)
        work.plan = plan
        stack.enter_context(work)
        status.figures = work.figures
        quick = replace(work.settings, spark={**QUICK, **demo.spark, **work.settings.spark})
        options = [word for flow in work.flows for word in ("--flow", flow)]
        driver = Driver(demo.name, demo.module, quick, options=options, folder=settings.data)
        processes = (driver, *work.processes)
        for each in (*processes, *work.unhurt):
            stack.callback(each.kill)
        return _Run(settings, plan, status, pipeline, work, processes).run()


def _imported(demo: Demo) -> tuple[Pipeline, Callable[[Settings], Work]]:
    declared = vars(import_module(demo.module)).values()
    pipeline = next(each for each in declared if isinstance(each, Pipeline) and each.name == demo.name)
    module, _, name = demo.work.partition(":")
    return pipeline, getattr(import_module(module), name)


@dataclass
class _Run:
    settings: Settings
    plan: Plan
    status: RunStatus
    pipeline: Pipeline
    work: Work
    processes: tuple[Process, ...]
    recovered: float = 0.0
    looked: float = 0.0  # when it was last seen whether something is reached

    def run(self) -> Report:
        """Go through all stages."""
        self._start()
        self._steady()
        self._kill()
        self._settle()
        self._enter("check")
        recovery = (
            "recovery",
            f"{self.recovered:,.1f} s",
            "from kill -9 to the next committed batch",
        )
        return self.work.report().with_figures(recovery)

    @property
    def _all(self) -> Sequence[Process]:
        return (*self.processes, *self.work.unhurt)

    @property
    def _flows(self) -> Sequence[str]:
        return self.work.flows or [*self.pipeline.flows]

    def _enter(self, stage: str, note: str = "") -> None:
        self.status.enter(stage, note)
        self.work.began[stage] = time.time()
        self.work.begin(stage)

    def _start(self) -> None:
        self._enter("start", "Spark takes the longest")
        self._start_all()
        slowly = max(1, self.plan.rate // _AT_FIRST)
        self._send_until(lambda: self._position() > 0 and self.work.has_begun(), "the first results", slowly)
        self.status.note = "warming up"
        until = time.monotonic() + self.plan.warm_up
        self._send_until(lambda: time.monotonic() > until or self.work.keeps_up(), "results without delay")

    def _start_all(self) -> None:
        for each in self._all:
            if not each.alive:
                each.start()

    def _steady(self) -> None:
        plan = self.plan
        if plan.serve:
            place = f"PENSTOCK_DATA={self.settings.data} penstock console"
            self._enter("steady", f"until Ctrl-C; see it: {place}")
            self._send_until(lambda: False, "Ctrl-C", patience=inf)
        self._enter("steady", f"{plan.seconds:.0f} s at {plan.rate:,} a second")
        send_for(self.work, plan.rate, plan.seconds)

    def _kill(self) -> None:
        """The traffic goes on all the while."""
        self._enter("kill", "driver, JVM and workers are gone; they start again")
        killed = time.monotonic()
        for each in self.processes:
            each.kill()
        before = self._position()  # of the dead: what they committed last is no recovery
        self._start_all()
        self._send_until(lambda: self._position() > before, "a batch after the kill")
        self.recovered = time.monotonic() - killed
        self.status.note = f"back after {self.recovered:.0f} s"
        send_for(self.work, self.plan.rate, self.plan.after)

    def _settle(self) -> None:
        self._enter("settle", "no more traffic")
        self.work.finish()
        wait_until_caught_up(
            self.pipeline, self.settings, self.plan.patience, self.work.awaited or self._flows
        )
        deadline = time.monotonic() + self.plan.patience
        while not self.work.is_settled() and time.monotonic() < deadline:  # what differs is reported
            self._check_alive("all results")
            time.sleep(0.3)

    def _send_until(
        self, reached: Callable[[], bool], what: str, rate: int | None = None, patience: float | None = None
    ) -> None:
        def over() -> bool:
            if time.monotonic() - self.looked < _LOOK:
                return False
            self._check_alive(what)
            is_reached, self.looked = reached(), time.monotonic()
            return is_reached

        try:
            send_until(self.work, rate or self.plan.rate, over, what, patience or self.plan.patience)
        except InternalError as error:
            said = "\n".join(f"{type(each).__name__}: {each.last_words()}" for each in self.processes)
            raise InternalError(f"{error.message}\n{said}") from error

    def _check_alive(self, what: str) -> None:
        for each in self._all:
            if not each.alive:
                raise InternalError(f"{type(each).__name__} ended before {what}: {each.last_words()}")

    def _position(self) -> int:
        """How many events all flows have read and committed."""
        groups, namespace = Groups(self.settings), self.settings.namespace
        names = [Identity.of(namespace, self.pipeline.name, flow).group for flow in self._flows]
        positions = [each for name in names for each in groups.positions(name).values()]
        return sum(sum(offsets.values()) for offsets in positions)
