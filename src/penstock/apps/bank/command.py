"""penstock demo bank."""

from typing import Annotated

import typer

from penstock.apps.bank.status import STAGES
from penstock.apps.demo.command import FAILED, run_on_screen
from penstock.apps.demo.screen import screen
from penstock.apps.demo.status import RunStatus
from penstock.cli.output import console


def bank(
    rate: Annotated[int, typer.Option(min=1, help="Commands a second, of 16 writers.")] = 40,
    seconds: Annotated[int, typer.Option(min=1, help="How long it runs before it is killed.")] = 12,
) -> None:
    """Move money by commands and events; kill all readers with -9; check every event and every row.

    Example: penstock demo bank --rate 40 --seconds 10
    """
    console.print("[bold]The bank[/bold]: commands, events, transfers and views, through a kill -9")
    console.print("[dim]It takes a minute or two; Ctrl-C stops it at any moment.[/dim]\n")
    status = RunStatus(STAGES)
    status.enter("services")
    from penstock.apps.bank.demo import Plan, run_alone
    from penstock.apps.bank.described import described

    plan = Plan(rate=rate, seconds=seconds)
    report = run_on_screen(status, screen(status, console), lambda: run_alone(plan, status))
    console.print(described(report, status.seconds))
    if not report.complete:
        raise typer.Exit(FAILED)
