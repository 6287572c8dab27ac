"""penstock demo: the platform at work, on this machine, in under a minute."""

from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.apps.tour.tour import MEMBERS, Report, take_tour
from penstock.cli.output import console
from penstock.local import running


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(demo)


def demo(events: Annotated[int, typer.Option(help="How many events to send.")] = 100_000) -> None:
    """Start a real Kafka and PostgreSQL, send events through the log, kill a reader, and count.

    Example: penstock demo --events 20000
    """
    console.print("[bold]Penstock demo[/bold]: a broker, a database, a group of three, one kill -9")
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        console.status("starting Kafka and PostgreSQL"),
        running() as settings,
        Progress(*columns, console=console) as bars,
    ):
        tasks = {what: bars.add_task(what, total=events) for what in ("sending", "reading")}
        report = take_tour(settings, events, lambda what, done, _: bars.update(tasks[what], completed=done))
    console.print(_table(report))
    if not report.complete:
        console.print(f"[red]{report.sent - report.distinct} events were not read, lag {report.lag}[/red]")
        raise typer.Exit(70)
    console.print("[green]every event was read; nothing is left running[/green]")


def _table(report: Report) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    sent_rate, read_rate = report.sent / report.sent_seconds, report.distinct / report.read_seconds
    table.add_row("sent", f"{report.sent:,}", f"typed payments, {sent_rate:,.0f}/s, acknowledged by the log")
    table.add_row(
        "read",
        f"{report.distinct:,}",
        f"by a group of {MEMBERS} in {report.read_seconds:.1f} s, {read_rate:,.0f}/s",
    )
    table.add_row("read twice", f"{report.repeated:,}", "read but not committed when the member was killed")
    table.add_row("killed", report.killed, f"with -9; the group went on {report.noticed_seconds:.1f} s later")
    table.add_row(
        "rebalances", f"{report.rebalances}", "assignments and revocations that members were told of"
    )
    for partition, kept in sorted(report.kept.items()):
        seen = report.reads.get(partition, ())
        table.add_row(f"partition {partition}", f"{kept:,}", f"{len(seen):,} read")
    table.add_row("lag", f"{report.lag:,}", "events behind, at the end")
    return table
