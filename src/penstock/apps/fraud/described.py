"""What came of a run of the fraud application, for people: the verdict, the figures, what to try next."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.apps.demo.latency import percentile
from penstock.cli.output import milliseconds, rows

if TYPE_CHECKING:
    from penstock.apps.fraud.blocking import Blocking
    from penstock.apps.fraud.report import Report

_PROMPT = 0.5  # seconds
NEXT = (
    ("src/penstock/apps/fraud/pipeline.py", "the five flows, in 120 lines"),
    ("docs/install.md", "a pipeline of your own, in 30"),
    ("penstock demo log", "the log alone, and a reader killed with -9"),
)


def described(report: "Report", interval: str, seconds: float) -> RenderableType:
    """The whole of it, as it is printed at the end; `interval` is that of the checkpoints."""
    parts: list[RenderableType] = [verdict(report), rows(_figures(report, seconds))]
    parts += [_latencies(report, interval), _quality(report), _next()]
    spaced: list[RenderableType] = [line for part in parts for line in ("", part)]
    return Group(*spaced)


def verdict(report: "Report") -> Text:
    """Whether it did what it should, in one line."""
    if report.complete:
        found = f"{report.alerts:,} alerts, each checked: 0 lost, 0 wrong"
        return Text(f"✓ {found}; nothing is left running", "bold green")
    counts = {
        "alerts lost": len(report.lost),
        "wrong": len(report.wrong),
        "missing where each stands once": report.missing,
        "twice there": report.doubled,
        "refused for nothing": report.blocking.wrong,
        "users miscounted": report.miscounted,
    }
    found = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "there was no alert"
    examples = ", ".join(sorted(report.lost | report.wrong)[:5])
    return Text(f"✗ {found}: {examples}", "bold red")


def _figures(report: "Report", seconds: float) -> Iterable[tuple[str, str, str]]:
    yield "transactions", f"{report.sent:,}", f"{report.rate:,} a second, but for the start"
    yield "alerts", f"{report.alerts:,}", "each recomputed from the log, evidence included"
    yield "lost", f"{len(report.lost):,}", "called for by the log, but not emitted"
    yield "wrong", f"{len(report.wrong):,}", "not called for, or with other evidence"
    yield "re-emitted", f"{report.repeated:,}", "after the kill; readers know them by their ids"
    once = [milliseconds(percentile(report.once, share)) for share in (0.5, 0.99)]
    taken = f"p50 {once[0]}, p99 {once[1]} after the transaction"
    yield (
        "once",
        f"{report.alerts - report.missing:,}",
        f"in a topic of their own, {report.doubled:,} twice; {taken}",
    )
    yield from _blocking(report.blocking)
    counted = f"with alerts, each counted once; {report.miscounted:,} miscounted"
    yield "users", f"{report.users:,}", counted
    prompt = sum(took <= _PROMPT for took in report.latencies) / max(1, len(report.latencies))
    yield "within 500 ms", f"{prompt:.1%}", "of the alerts before the kill, checkpoints included"
    yield "first start", f"{report.started_seconds:,.1f} s", "until the first alert"
    yield "recovery", f"{report.recovered_seconds:,.1f} s", "from kill -9 to the next new alert"
    yield _caught_up(report.caught_up_seconds)
    yield "in all", f"{seconds:,.1f} s", "with starting and stopping the services"


def _blocking(found: "Blocking") -> Iterable[tuple[str, str, str]]:
    refused = f"transactions of blocked cards, {found.money_refused:,.2f} in all; {found.wrong:,} for nothing"
    yield "refused", f"{found.refused:,}", refused
    passed = f"of cards with an alert before the block reached them, {found.money_passed:,.2f} in all"
    yield "passed", f"{found.passed:,}", passed


def _caught_up(seconds: float | None) -> tuple[str, str, str]:
    if seconds is None:
        return "caught up", "–", "not before the traffic ended: this machine is busy, or slow"
    return "caught up", f"{seconds:,.1f} s", "from kill -9 to alerts without delay"


def _latencies(report: "Report", interval: str) -> Table:
    """From a transaction's making to its alert's being read, before the kill."""
    table = Table(box=None, pad_edge=False)
    table.add_column("latency", style="bold")
    for name in ("alerts", "p50", "p99", "longest"):
        table.add_column(name, justify="right")
    _add(table, "between checkpoints", report.between)
    _add(table, f"waiting for one, every {interval}", report.waited)
    _add(table, f"all, with {report.checkpoints} checkpoints", report.latencies)
    return table


def _add(table: Table, name: str, seconds: list[float]) -> None:
    shown = (milliseconds(percentile(seconds, share)) for share in (0.5, 0.99, 1.0))
    table.add_row(name, f"{len(seconds):,}", *shown)


def _quality(report: "Report") -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("rule", style="bold")
    for name in ("labelled", "precision", "recall"):
        table.add_column(name, justify="right")
    for reason, (precision, recall, labelled) in report.quality.items():
        table.add_row(reason, f"{labelled:,}", f"{precision:.3f}", f"{recall:.3f}")
    return table


def _next() -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="cyan")
    table.add_column(style="dim")
    table.add_row(Text("Try next", "bold default"), "")
    for what, why in NEXT:
        table.add_row(what, why)
    return table
