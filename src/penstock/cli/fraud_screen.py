"""What a run of the fraud application looks like while it runs: redrawn in place, or a line now and then."""

import math
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from penstock.apps.fraud.status import STAGES, Figures, Status
from penstock.cli.fraud_lines import printed
from penstock.cli.output import milliseconds

_SPINNER, _BARS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "▁▂▃▄▅▆▇█"
_FRAMES = 4  # a second


@contextmanager
def screen(status: Status, console: Console) -> Iterator[None]:
    """Show a run for as long as the block runs, as the console allows; it is over with the block."""
    with _shown(status, console):
        try:
            yield
        finally:
            status.end()


def _shown(status: Status, console: Console) -> AbstractContextManager[object]:
    if console.is_terminal and not console.is_dumb_terminal:
        return Live(get_renderable=lambda: frame(status), console=console, refresh_per_second=_FRAMES)
    return printed(status, console)


def frame(status: Status) -> RenderableType:
    """The screen at this moment; when the run is over, only what it did and how long that took."""
    if status.ended is not None:
        return _stages(status)
    figures = status.figures()
    return Group(_stages(status), "", _figures(status, figures), "", _alerts(status))


def _stages(status: Status) -> Table:
    table = _plain_table()
    table.add_column(width=1)
    table.add_column(width=25)
    table.add_column(width=7, justify="right")
    table.add_column(style="dim", overflow="ellipsis", no_wrap=True)
    for name, title in STAGES.items():
        table.add_row(*_stage(status, name, title))
    return table


def _stage(status: Status, name: str, title: str) -> Iterable[RenderableType]:
    if name not in status.entered:
        return "", Text(title, "dim"), "", ""
    took = f"{status.seconds_in(name):.1f} s"
    if name != status.stage or status.complete:
        return Text("✓", "green"), title, took, ""
    if status.ended is not None:
        return Text("✗", "red"), Text(title, "red"), took, "interrupted" if status.interrupted else "failed"
    spinning = _SPINNER[int(10 * status.seconds) % len(_SPINNER)]
    return Text(spinning, "cyan"), Text(title, "bold"), took, status.note


def _figures(status: Status, figures: Figures) -> Table:
    table = _plain_table()
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
    table = _plain_table()
    table.add_column(width=1)
    table.add_column(width=13, style="dim")
    table.add_column(width=11, style="yellow")
    table.add_column(width=8, justify="right")
    table.add_column(style="dim", no_wrap=True)
    for card, reason, evidence, took in reversed(status.latest):
        behind = f"{evidence} transaction{'s' * (evidence > 1)} as evidence"
        table.add_row("", card, reason, milliseconds(took), behind)
    return table


def _plain_table() -> Table:
    return Table(box=None, show_header=False, pad_edge=False)


def bars(values: list[float], least: float = 0.0, most: float | None = None) -> str:
    """Draw values as bars of text, the highest one in full unless `most` is higher.

    >>> bars([0, 5, 10])
    '▁▅█'
    """
    top = max([*values, least + 1e-9]) if most is None else most
    parts = [(min(value, top) - least) / (top - least) for value in values]
    return "".join(_BARS[max(0, min(7, int(8 * part)))] for part in parts)
