"""`penstock up`, `down`, `status` and `logs`: the services on this machine."""

import json
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.errors import SettingsError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.local import Platform, ServiceStatus

NOT_RUNNING = 3
_COLOURS = {"running": "green", "stopped": "yellow", "crashed": "red"}

Data = Annotated[
    Path | None, typer.Option(help="Folder of the data; .penstock unless the settings say else.")
]
Port = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Use exactly this port.", show_default="free")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this file to the command line."""
    for command in (up, down, status, logs):
        app.command()(command)


def up(
    data: Data = None,
    kafka_port: Port = None,
    postgres_port: Port = None,
    redis_port: Port = None,
    also: Annotated[
        list[str] | None, typer.Option("--with", help="Start this service, too: redis. May be repeated.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data and start empty.")] = False,
) -> None:
    """Start a real Kafka and a real PostgreSQL on this machine, or attach to those that run.

    What was once started with --with comes up with the others from then on.

    Example: penstock up --with redis
    """
    from penstock.local import Platform, services_of

    console = Console(markup=False, emoji=False)
    folder = _folder(data)
    services = services_of(folder, also or ())
    platform = Platform(folder, kafka_port, postgres_port, services, redis_port=redis_port)
    began = time.monotonic()
    with console.status(f"starting {', '.join(services)}"):
        platform.up(fresh, console.print)
    console.print(f"ready in {time.monotonic() - began:.1f} s; data in {platform.data}", soft_wrap=True)


def down(data: Data = None) -> None:
    """Stop what `penstock up` started; the data stays.

    Example: penstock down
    """
    console = Console(markup=False, emoji=False)
    with console.status("stopping"):
        _platform(data).down(console.print)


def status(
    data: Data = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Show which services run, where they listen and where they log; exit code 3 if one doesn't run.

    Example: penstock status --json
    """
    found = _platform(data).status()
    if as_json:
        typer.echo(json.dumps([asdict(one) for one in found], default=str, indent=2))
    else:
        Console().print(_table(found))
    if any(one.state != "running" for one in found):
        raise typer.Exit(NOT_RUNNING)


def logs(
    service: Annotated[str, typer.Argument(help="kafka, postgres or redis")],
    data: Data = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines from the end.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
) -> None:
    """Print the end of a service's log.

    Example: penstock logs kafka --lines 100 --follow
    """
    from penstock.local import KNOWN, Platform
    from penstock.local.files import last_lines

    if service not in KNOWN:
        raise SettingsError(f"there is no service {service!r}", hint=f"known are {', '.join(KNOWN)}")
    path = Platform(_folder(data), services=(service,)).status()[0].log
    for line in last_lines(path, lines):
        typer.echo(line)
    if follow:
        for text in appended(path):
            typer.echo(text, nl=False)


def appended(path: Path, pause: float = 0.2) -> Iterator[str]:
    """Yield what is written to a file from now on, also when it is rolled over, until interrupted."""
    position = path.stat().st_size if path.exists() else 0
    while True:
        size = path.stat().st_size if path.exists() else 0
        position = 0 if size < position else position
        if size > position:
            with path.open("rb") as file:
                file.seek(position)
                grown = file.read()
            position += len(grown)
            yield grown.decode(errors="replace")
        time.sleep(pause)


def _platform(data: Path | None) -> "Platform":
    """The platform of a folder, with every service that was started in it."""
    from penstock.local import Platform, services_of

    folder = _folder(data)
    return Platform(folder, services=services_of(folder))


def _folder(data: Path | None) -> Path:
    return Settings.load().data if data is None else data


def _table(found: "list[ServiceStatus]") -> Table:
    table = Table("service", "state", "address", "pid", "up for", "version", box=None, pad_edge=False)
    table.add_column("log", overflow="fold")
    for one in found:
        uptime = "" if one.uptime is None else str(timedelta(seconds=int(one.uptime)))
        state = Text(one.state, style=_COLOURS[one.state])
        pid = "" if one.pid is None else str(one.pid)
        table.add_row(one.name, state, one.address or "", pid, uptime, one.version, Text(str(one.log)))
    return table
