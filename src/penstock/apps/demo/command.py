"""A demo as a command: shown while it runs, and stopped by Ctrl-C with all that it has started."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TypeVar

import typer

from penstock.apps.demo.status import RunStatus
from penstock.cli.ending import ending_in_order
from penstock.cli.output import console

FAILED, INTERRUPTED = 70, 130
R = TypeVar("R")


def run_on_screen(status: RunStatus, screen: AbstractContextManager[None], run: Callable[[], R]) -> R:
    """Run it under a screen; a signal to end stops it in order, with an exit code of its own."""
    try:
        with screen, ending_in_order(status.interrupt):
            return run()
    except KeyboardInterrupt:
        console.print(f"\n[yellow]stopped after {status.seconds:.0f} s; nothing is left running[/yellow]")
        raise typer.Exit(INTERRUPTED) from None
