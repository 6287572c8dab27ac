"""A demo described: what runs, what is sent, and for how long."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import typer

from penstock.apps.demo.command import FAILED, run_on_screen
from penstock.apps.demo.report import Report, described
from penstock.apps.demo.screen import screen
from penstock.apps.demo.status import RunStatus
from penstock.cli.output import console

STAGES = {
    "services": "start the services",
    "start": "start the flows on Spark",
    "steady": "send, and compute",
    "kill": "kill -9, and recover",
    "settle": "let the results follow",
    "check": "check against the truth",
    "stop": "stop everything",
}
SERVED = {name: STAGES[name] for name in ("services", "start", "steady")}


@dataclass(frozen=True)
class Plan:
    """How much is sent, and for how long."""

    rate: int  # a second
    seconds: float  # before the kill
    warm_up: float = 20.0  # seconds at most, until results come without delay
    after: float = 5.0  # behind the recovery
    patience: float = 180.0  # seconds that anything is waited for
    serve: bool = False


@dataclass(frozen=True)
class Demo:
    """An application at work for a bounded time, killed on the way, and its results checked.

    `module` declares the pipeline of the demo's name; `work` is "module:Class" of its `Work`. Both are
    imported when it runs: a demo that is only listed costs nothing. Of `services`, those run that are
    installed; `spark` are settings of Spark's. The flows work in the folder of the services' data: what they
    write to a path is below it.
    """

    name: str
    title: str
    module: str
    work: str
    rate: int
    seconds: int = 15
    services: tuple[str, ...] = ("kafka", "postgres")
    spark: Mapping[str, str] = field(default_factory=dict)
    next: tuple[tuple[str, str], ...] = ()

    def command(self) -> Callable[..., None]:
        """The command to be registered as one of `penstock.demos`."""

        def demo(
            rate: Annotated[int, typer.Option(min=1, help="Events a second.")] = self.rate,
            seconds: Annotated[
                int, typer.Option(min=1, help="How long it runs before it is killed.")
            ] = self.seconds,
            serve: Annotated[
                bool, typer.Option("--serve", help="Go on until Ctrl-C, without a kill.")
            ] = False,
        ) -> None:
            self._run(Plan(rate, seconds, serve=serve))

        demo.__doc__ = f"{self.title}.\n\nExample: penstock demo {self.name} --seconds 10"
        return demo

    def _run(self, plan: Plan) -> None:
        console.print(f"[bold]{self.title}[/bold]")
        console.print("[dim]It takes a minute or two; Ctrl-C stops it at any moment.[/dim]\n")
        status = RunStatus(SERVED if plan.serve else STAGES)
        report = run_on_screen(status, screen(status, console), lambda: self._report(plan, status))
        spent = ("in all", f"{status.seconds:,.1f} s", "with starting and stopping the services")
        console.print(described(report.with_figures(spent), self.next))
        if not report.complete:
            raise typer.Exit(FAILED)

    def _report(self, plan: Plan, status: RunStatus) -> Report:
        status.enter("services", ", ".join(self.services))
        from penstock.apps.demo.run import run_alone

        return run_alone(self, plan, status)
