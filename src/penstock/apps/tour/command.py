"""penstock demo log."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.apps.demo.command import FAILED
from penstock.cli.output import console, rows

if TYPE_CHECKING:
    from penstock.apps.tour.tour import Report


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
        raise typer.Exit(FAILED)
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
