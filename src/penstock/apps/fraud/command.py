"""penstock demo fraud."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.apps.demo.command import FAILED, run_on_screen
from penstock.apps.fraud.described import described
from penstock.apps.fraud.plan import CHECKPOINT_INTERVAL, Plan
from penstock.apps.fraud.screen import screen
from penstock.apps.fraud.status import Status
from penstock.cli.output import console

if TYPE_CHECKING:
    from penstock.apps.fraud.report import Report


def fraud(
    rate: Annotated[int, typer.Option(min=1, help="Transactions a second.")] = Plan.rate,
    seconds: Annotated[int, typer.Option(min=1, help="How long it runs before it is killed.")] = Plan.seconds,
) -> None:
    """Judge transactions in real time; kill it with -9 on the way; check every alert.

    Example: penstock demo fraud --rate 200 --seconds 20
    """
    console.print("[bold]Fraud[/bold]: rules, a model and a pattern, in real time, through a kill -9")
    console.print("[dim]It takes a few minutes; Ctrl-C stops it at any moment.[/dim]\n")
    status = Status()
    plan = Plan(rate, seconds)
    report = run_on_screen(status, screen(status, console), lambda: _run(plan, status))
    console.print(described(report, CHECKPOINT_INTERVAL, status.seconds))
    if not report.complete:
        raise typer.Exit(FAILED)


def _run(plan: Plan, status: Status) -> "Report":
    status.enter("services", "Kafka and PostgreSQL")
    from penstock.apps.fraud.demo import run_alone

    return run_alone(plan, status)
