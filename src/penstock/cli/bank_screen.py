"""What a run of the bank looks like while it runs."""

from contextlib import AbstractContextManager

from rich.console import Console, Group, RenderableType
from rich.table import Table

from penstock.apps.bank.status import Status
from penstock.cli.run_screen import RunLines, plain_table, run_screen, stages_of

_TITLES = 35  # letters of the longest title


def screen(status: Status, console: Console) -> AbstractContextManager[None]:
    """Show a run for as long as the block runs."""
    return run_screen(status, console, lambda: frame(status), lines_of(status))


def frame(status: Status) -> RenderableType:
    """The screen at this moment; when the run is over, only what it did and how long that took."""
    stages = stages_of(status, _TITLES)
    return stages if status.ended is not None else Group(stages, "", _figures(status))


def _figures(status: Status) -> Table:
    table = plain_table()
    table.add_column(width=1)
    table.add_column(width=_TITLES)
    table.add_column(width=8, justify="right")
    table.add_column(overflow="ellipsis", no_wrap=True)
    for row in status.figures():
        table.add_row("", *row)
    return table


def lines_of(status: Status) -> RunLines:
    """The run as plain lines, where there is no terminal to redraw."""
    return RunLines(
        status, lambda: "; ".join(f"{name} {value} ({what})" for name, value, what in status.figures())
    )
