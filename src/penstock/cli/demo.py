"""penstock demo: the platform at work, on this machine, in two minutes."""

import time
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.apps.tour.tour import MEMBERS, Report, take_tour
from penstock.apps.tour.watch import LiveReport, watch_live
from penstock.cli.output import console
from penstock.local import running
from penstock.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command()(demo)


def demo(
    events: Annotated[int, typer.Option(help="How many events to send through the log.")] = 100_000,
    seconds: Annotated[int, typer.Option(help="How long the flow runs before it is killed.")] = 15,
) -> None:
    """Start a real Kafka and PostgreSQL; kill a reader of the log, and a flow in real time; count.

    Example: penstock demo --events 20000
    """
    console.print("[bold]Penstock demo[/bold]: a broker, a database, a group of three, a flow, two kill -9")
    with console.status("starting Kafka and PostgreSQL") as status, running() as settings:
        status.stop()
        report = _show_log(settings, events)
        live = _show_flow(settings, seconds)
    if not report.complete:
        console.print(f"[red]{report.sent - report.distinct} events were not read, lag {report.lag}[/red]")
    if not live.complete:
        console.print(f"[red]{live.missing} answers are missing, {live.wrong} are wrong[/red]")
    if not (report.complete and live.complete):
        raise typer.Exit(70)
    console.print("[green]0 lost, 0 wrong; nothing is left running[/green]")


def _show_log(settings: Settings, events: int) -> Report:
    console.print("\n[bold]The log[/bold]")
    columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bars:
        tasks = {what: bars.add_task(what, total=events) for what in ("sending", "reading")}
        report = take_tour(settings, events, lambda what, done, _: bars.update(tasks[what], completed=done))
    console.print(_table(report))
    return report


def _show_flow(settings: Settings, seconds: int) -> LiveReport:
    console.print("\n[bold]A flow in real time[/bold]: a card's payments within 10 s, told for each")
    began = time.monotonic()
    live = watch_live(
        settings,
        seconds,
        lambda what: console.print(f"[dim]{time.monotonic() - began:5.1f} s[/dim]  {what}", highlight=False),
    )
    console.print(_live_table(live))
    return live


def _live_table(live: LiveReport) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    rows = (
        ("payments", f"{live.sent:,}", "sent while the flow started, ran, was killed and came back"),
        ("answered", f"{live.answered:,}", "each once, by readers that leave repetitions out"),
        ("told again", f"{live.repeated:,}", "written since the last checkpoint when the flow was killed"),
        ("missing", f"{live.missing:,}", "recomputed from the log, one by one"),
        ("wrong", f"{live.wrong:,}", "recomputed from the log, one by one"),
        ("p50", f"{live.percentile(0.5):,.0f} ms", "from the payment in the log to its answer in the log"),
        ("p99", f"{live.percentile(0.99):,.0f} ms", "with a checkpoint every 5 s, which takes most of that"),
        ("first start", f"{live.started_seconds:,.1f} s", "until the first answer"),
        ("recovery", f"{live.recovered_seconds:,.1f} s", "from kill -9 to the next answer"),
    )
    for row in rows:
        table.add_row(*row)
    return table


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
