"""penstock demo: the platform at work, on this machine, in minutes."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.apps.fraud.plan import CHECKPOINT_INTERVAL, Plan
from penstock.cli.output import console

if TYPE_CHECKING:
    from penstock.apps.fraud.report import Report as FraudReport
    from penstock.apps.tour.tour import Report

app = typer.Typer(help="The platform at work, on this machine.", no_args_is_help=True)
_FAILED = 70


@app.command()
def fraud(
    rate: Annotated[int, typer.Option(help="Transactions a second.")] = Plan.rate,
    seconds: Annotated[int, typer.Option(help="How long it runs before it is killed.")] = Plan.seconds,
) -> None:
    """Judge transactions in real time; kill it with -9 on the way; check every alert.

    Example: penstock demo fraud --rate 200 --seconds 20
    """
    from penstock.apps.fraud.demo import run_fraud
    from penstock.local import running

    console.print("[bold]Fraud[/bold]: rules, a model and a pattern, in real time, through a kill -9")
    began = time.monotonic()
    with console.status("starting Kafka") as status, running(services=("kafka",)) as settings:
        status.stop()
        report = run_fraud(
            settings,
            Plan(rate, seconds),
            lambda what: console.print(
                f"[dim]{time.monotonic() - began:5.1f} s[/dim]  {what}", highlight=False
            ),
        )
    console.print(_rows(_measured(report)))
    console.print(_quality(report))
    if not report.complete:
        examples = ", ".join(sorted(report.lost | report.wrong)[:5])
        console.print(
            f"[red]{len(report.lost)} alerts were lost, {len(report.wrong)} are wrong, "
            f"{report.miscounted} users miscounted: {examples}[/red]"
        )
        raise typer.Exit(_FAILED)
    console.print("[green]0 lost, 0 duplicate, 0 wrong; nothing is left running[/green]")


def _measured(report: "FraudReport") -> Iterable[tuple[str, str, str]]:
    from penstock.apps.fraud.report import percentile

    yield "transactions", f"{report.sent:,}", f"in; {report.rate:,} a second, but for the start"
    yield "alerts", f"{report.alerts:,}", "out, each once, by readers that leave duplicates out"
    yield "re-emitted", f"{report.repeated:,}", "written since the last checkpoint when it was killed"
    yield "lost", f"{len(report.lost):,}", "of those called for by the log, each recomputed"
    yield "wrong", f"{len(report.wrong):,}", "not called for, or with other evidence"
    yield "users", f"{report.users:,}", f"with suspicious acts, {report.miscounted} of them miscounted"
    p50, p99 = (f"{percentile(report.between, share):,.0f} ms" for share in (0.5, 0.99))
    yield "p50", p50, "from a transaction's making to its alert's being read"
    yield "p99", p99, f"between checkpoints, which are every {CHECKPOINT_INTERVAL}"
    waited = f"{len(report.waited):,} of {len(report.latencies):,} alerts waited"
    longest = f"longest of {report.checkpoints} checkpoints; {waited}"
    yield "pause", f"{1000 * max(report.waited, default=0.0):,.0f} ms", longest
    yield "p99 with pauses", f"{percentile(report.latencies, 0.99):,.0f} ms", "of all alerts"
    yield "first start", f"{report.started_seconds:,.1f} s", "until the first alert"
    yield "settled", f"{report.settled_seconds:,.1f} s", "until alerts came without delay at the full rate"
    yield "recovery", f"{report.recovered_seconds:,.1f} s", "from kill -9 to the next new alert"
    yield "caught up", f"{report.caught_up_seconds:,.1f} s", "from kill -9 until alerts came without delay"


def _quality(report: "FraudReport") -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("rule", style="bold")
    for name in ("labelled", "precision", "recall"):
        table.add_column(name, justify="right")
    for reason, (precision, recall, labelled) in report.quality.items():
        table.add_row(reason, f"{labelled:,}", f"{precision:.3f}", f"{recall:.3f}")
    return table


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
    console.print(_rows(_read(report)))
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


def _rows(rows: Iterable[tuple[str, str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    for row in rows:
        table.add_row(*row)
    return table
