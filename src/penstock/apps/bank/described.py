"""What came of a run of the bank, for people: the verdict, the figures, what to try next."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from penstock.apps.demo.latency import percentile
from penstock.cli.output import milliseconds, rows

if TYPE_CHECKING:
    from penstock.apps.bank.report import Report

_NEXT = (
    ("src/penstock/apps/bank/transfers.py", "the process, in a hundred lines"),
    ("src/penstock/apps/bank/pipeline.py", "the views"),
    ("docs/bank.md", "the same by hand: penstock bank …"),
)


def described(report: "Report", seconds: float) -> RenderableType:
    """The whole of it, as it is printed at the end."""
    next_ = rows((what, "", why) for what, why in _NEXT)
    return Group("", verdict(report), "", rows(figures(report, seconds)), "", Text("Try next", "bold"), next_)


def verdict(report: "Report") -> Text:
    """Whether it did what it should, in one line."""
    if report.complete:
        found = f"{report.events:,} events, no money lost or made, every row of the views as the log has it"
        return Text(f"✓ {found}; nothing is left running", "bold green")
    wrong = {
        f"{report.lost} of the money is gone": report.lost,
        f"{report.under_way} is still under way": report.under_way,
        f"{report.unfinished} transfers did not end": report.unfinished,
        f"rows differ: {report.differing}": sum(report.differing.values()),
        f"{report.missing} events are not on their topic": report.missing,
        f"{report.doubled} are there twice": report.doubled,
        f"{report.disordered} are out of order": report.disordered,
        "nothing happened": not report.events,
    }
    return Text("✗ " + ", ".join(text for text, is_wrong in wrong.items() if is_wrong), "bold red")


def figures(report: "Report", seconds: float) -> Iterable[tuple[str, str, str]]:
    """Each figure with its name and what it means."""
    yield "events", f"{report.events:,}", "appended to the store"
    yield "commands", f"{report.accepted:,}", f"accepted; {report.conflicts:,} conflicts were retried"
    reasons = ", ".join(f"{name} {count:,}" for name, count in report.refused.most_common())
    yield "refused", f"{report.refused.total():,}", reasons
    ends = ", ".join(f"{count:,} {end}" for end, count in report.ends.most_common())
    yield "transfers", f"{report.ends.total():,}", ends
    yield "money", f"{report.balances:,}", f"on all accounts; paid in less paid out: {report.paid_in:,}"
    yield "lost or made", f"{report.lost:,}", f"{report.under_way:,} still under way"
    yield "rows", f"{report.rows:,}", f"of views; {sum(report.differing.values()):,} not as the log has them"
    once = f"missing on the topics; {report.doubled:,} twice, {report.disordered:,} out of order"
    yield "events", f"{report.missing:,}", once
    yield from _delays(report)
    yield "in all", f"{seconds:,.1f} s", "with starting and stopping Kafka and PostgreSQL"


def _delays(report: "Report") -> Iterable[tuple[str, str, str]]:
    of = f"from a command to the view, {len(report.delays):,} commands before the kill"
    yield "p50", milliseconds(percentile(report.delays, 0.5)), of
    yield "p99", milliseconds(percentile(report.delays, 0.99)), "of the same"
    yield "own write", milliseconds(1000 * report.own_write), "read back behind a wait for it"
    yield "recovery", f"{report.recovered:,.1f} s", "from kill -9 to the next command in the view"
    yield "longest", f"{report.longest:,.1f} s", "that a command took to the view, all in all"
