"""What a run of the fraud application looks like while it runs: redrawn in place, or a line now and then."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from penstock.apps.demo.screen import RunLines, plain_table, run_screen, stages_of
from penstock.apps.fraud.status import Figures, Status
from penstock.cli.output import milliseconds

_BARS = "▁▂▃▄▅▆▇█"
_TITLES = 25  # letters of the longest title


def screen(status: Status, console: Console) -> AbstractContextManager[None]:
    """Show a run for as long as the block runs."""
    return run_screen(status, console, lambda: frame(status), lines_of(status))


def frame(status: Status) -> RenderableType:
    """The screen at this moment; when the run is over, only what it did and how long that took."""
    if status.ended is not None:
        return stages_of(status, _TITLES)
    figures = status.sample()
    return Group(stages_of(status, _TITLES), "", _figures(status, figures), "", _alerts(status))


def _figures(status: Status, figures: Figures) -> Table:
    table = plain_table()
    table.add_column(width=1)
    table.add_column(width=13)
    table.add_column(width=9, justify="right", style="bold")
    table.add_column(width=10, justify="right")
    table.add_column(style="cyan", no_wrap=True)
    for row in (*_rates(figures, list(status.past)), *_counts(status, figures)):
        table.add_row("", *row)
    return table


def _rates(figures: Figures, past: list[Figures]) -> Iterator[tuple[str, str, str, str]]:
    sent, alerts = bars([each.sent_rate for each in past]), bars([each.alert_rate for each in past])
    slow = bars([math.log10(max(each.p99 or 1, 1)) for each in past], least=1, most=4.5)
    yield "transactions", f"{figures.sent:,}", f"{figures.sent_rate:,.0f}/s", sent
    yield "alerts", f"{figures.alerts:,}", f"{figures.alert_rate:,.0f}/s", alerts
    yield "p50, p99", milliseconds(figures.p50), milliseconds(figures.p99), slow


def _counts(status: Status, figures: Figures) -> Iterator[tuple[str, str, str, RenderableType]]:
    again = f"{figures.re_emitted:,} alerts re-emitted" if figures.re_emitted else ""
    yield "checkpoints", f"{status.checkpoints:,}", "", Text(again, "default")
    if status.checked:
        yield "checked", f"{status.checked:,}", f"of {status.to_check:,}", ""


def _alerts(status: Status) -> Table:
    table = plain_table()
    table.add_column(width=1)
    table.add_column(width=13, style="dim")
    table.add_column(width=11, style="yellow")
    table.add_column(width=8, justify="right")
    table.add_column(style="dim", no_wrap=True)
    for card, reason, evidence, took in reversed(status.latest):
        behind = f"{evidence} transaction{'s' * (evidence > 1)} as evidence"
        table.add_row("", card, reason, milliseconds(took), behind)
    return table


def bars(values: list[float], least: float = 0.0, most: float | None = None) -> str:
    """Draw values as bars of text, the highest one in full unless `most` is higher.

    >>> bars([0, 5, 10])
    '▁▅█'
    """
    top = max([*values, least + 1e-9]) if most is None else most
    parts = [(min(value, top) - least) / (top - least) for value in values]
    return "".join(_BARS[max(0, min(7, int(8 * part)))] for part in parts)


def lines_of(status: Status) -> RunLines:
    """The run as plain lines, where there is no terminal to redraw: CI, a pipe, a file."""
    return RunLines(status, lambda: _sentence(status, status.sample()))


def _sentence(status: Status, figures: Figures) -> str:
    if status.checked:
        return f"{status.checked:,} of {status.to_check:,} transactions checked, {figures.alerts:,} alerts"
    return (
        f"{figures.sent:,} transactions ({figures.sent_rate:,.0f}/s), {figures.alerts:,} alerts "
        f"({figures.alert_rate:,.0f}/s), p50 {milliseconds(figures.p50)}, p99 {milliseconds(figures.p99)}"
    )
