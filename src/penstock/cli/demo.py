"""penstock demo: the platform at work, on this machine, in minutes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.apps.fraud.plan import CHECKPOINT_INTERVAL, Plan
from penstock.apps.fraud.status import Status
from penstock.cli.ending import ending_in_order
from penstock.cli.fraud_report import described
from penstock.cli.fraud_screen import screen
from penstock.cli.output import console, rows

if TYPE_CHECKING:
    from penstock.apps.fraud.report import Report as FraudReport
    from penstock.apps.tour.tour import Report

app = typer.Typer(help="The platform at work, on this machine.", no_args_is_help=True)
_FAILED, _INTERRUPTED = 70, 130


@app.command()
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
    try:
        with screen(status, console), ending_in_order(status.interrupt):
            report = _run(Plan(rate, seconds), status)
    except KeyboardInterrupt:
        console.print(f"\n[yellow]stopped after {status.seconds:.0f} s; nothing is left running[/yellow]")
        raise typer.Exit(_INTERRUPTED) from None
    console.print(described(report, CHECKPOINT_INTERVAL, status.seconds))
    if not report.complete:
        raise typer.Exit(_FAILED)


def _run(plan: Plan, status: Status) -> "FraudReport":
    status.enter("kafka")
    from penstock.apps.fraud.demo import run_alone

    return run_alone(plan, status)


@app.command()
def bank(
    rate: Annotated[int, typer.Option(min=1, help="Commands a second, of 16 writers.")] = 40,
    seconds: Annotated[int, typer.Option(min=1, help="How long it runs before it is killed.")] = 12,
) -> None:
    """Move money by commands and events; kill all readers with -9; check every event and every row.

    Example: penstock demo bank --rate 40 --seconds 10
    """
    from penstock.apps.bank.status import Status
    from penstock.cli.bank_report import described
    from penstock.cli.bank_screen import screen

    console.print("[bold]The bank[/bold]: commands, events, transfers and views, through a kill -9")
    console.print("[dim]It takes a minute or two; Ctrl-C stops it at any moment.[/dim]\n")
    status = Status()
    try:
        with screen(status, console), ending_in_order(status.interrupt):
            status.enter("services")
            from penstock.apps.bank.demo import Plan, run_alone

            report = run_alone(Plan(rate=rate, seconds=seconds), status)
    except KeyboardInterrupt:
        console.print(f"\n[yellow]stopped after {status.seconds:.0f} s; nothing is left running[/yellow]")
        raise typer.Exit(_INTERRUPTED) from None
    console.print(described(report, status.seconds))
    if not report.complete:
        raise typer.Exit(_FAILED)


@app.command()
def log(
    events: Annotated[int, typer.Option(help="How many events to send through the log.")] = 100_000,
) -> None:
    """Read a topic with a group of three, kill one of them with -9, and count.

    Example: penstock demo log --events 20000
    """
    from penstock.apps.tour.tour import take_tour
    from penstock.local import running

    console.print("[bold]The log[/bold]: a broker, a group of three, a kill -9")
    with console.status("starting Kafka") as status, running(services=("kafka",)) as settings:
        status.stop()
        columns = (
            TextColumn("{task.description:>8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console) as bars:
            tasks = {what: bars.add_task(what, total=events) for what in ("sending", "reading")}
            report = take_tour(
                settings, events, lambda what, done, _: bars.update(tasks[what], completed=done)
            )
    console.print(rows(_read(report)))
    if not report.complete:
        console.print(f"[red]{report.sent - report.distinct} events were not read, lag {report.lag}[/red]")
        raise typer.Exit(_FAILED)
    console.print("[green]0 lost; nothing is left running[/green]")


def _read(report: "Report") -> Iterable[tuple[str, str, str]]:
    from penstock.apps.tour.tour import MEMBERS

    sent_rate, read_rate = report.sent / report.sent_seconds, report.distinct / report.read_seconds
    yield "sent", f"{report.sent:,}", f"typed payments, {sent_rate:,.0f}/s, acknowledged by the log"
    took = f"by a group of {MEMBERS} in {report.read_seconds:.1f} s, {read_rate:,.0f}/s"
    yield "read", f"{report.distinct:,}", took
    yield "read twice", f"{report.repeated:,}", "read but not committed when the member was killed"
    yield "killed", report.killed, f"with -9; the group went on {report.noticed_seconds:.1f} s later"
    yield "rebalances", f"{report.rebalances}", "assignments and revocations that members heard of"
    for partition, kept in sorted(report.kept.items()):
        yield f"partition {partition}", f"{kept:,}", f"{len(report.reads.get(partition, ())):,} read"
    yield "lag", f"{report.lag:,}", "events behind, at the end"
