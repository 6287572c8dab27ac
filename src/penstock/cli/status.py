"""`penstock status`: how everything is, from any process, also after a crash."""

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.live import Live

from penstock.cli.output import plain
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.ops.collecting import Collector
    from penstock.ops.model import System

NOT_RUNNING = 3

Data = Annotated[
    Path | None, typer.Option(help="Folder of the data; .penstock unless the settings say else.")
]


def status(
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again, until Ctrl-C.")] = False,
    every: Annotated[float, typer.Option(min=0.5, help="With --watch: so many seconds apart.")] = 2.0,
) -> None:
    """Show services, flows, groups, captures, replicas, archives and dead letters, as they are now.

    The exit code is 3 if a service on this machine does not run. Example: penstock status --watch
    """
    from penstock.ops.collecting import collecting

    with collecting(_settings(data)) as collector:
        if watch:
            _watch(collector, every)
            return
        found = collector.look()
    _show(found, as_json=as_json)
    if any(one.state != "running" for one in found.services):
        raise typer.Exit(NOT_RUNNING)


def _show(system: "System", *, as_json: bool) -> None:
    from penstock.cli.status_screen import screen
    from penstock.ops.document import document

    if as_json:
        typer.echo(json.dumps(document(system), default=plain, indent=2))
    else:
        Console(emoji=False, highlight=False).print(screen(system))


def _watch(collector: "Collector", every: float) -> None:
    from penstock.cli.status_screen import screen

    console = Console(emoji=False, highlight=False)
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False, screen=True) as live:
        while True:
            live.update(screen(collector.look()), refresh=True)
            time.sleep(every)


def _settings(data: Path | None) -> Settings:
    if data is None:
        return Settings.load()
    return Settings.load(environ={**os.environ, "PENSTOCK_DATA": str(data.expanduser().absolute())})
