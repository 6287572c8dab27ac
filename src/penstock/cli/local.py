"""`penstock up`, `down`, `status` and `logs`: the services on this machine, and how all is."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from penstock.cli.status import Data, status
from penstock.errors import SettingsError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.local import Platform

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
    brokers: Annotated[
        int | None,
        typer.Option(help="How many Kafka brokers, 1 or 3; the folder keeps the number.", show_default="1"),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data and start empty.")] = False,
) -> None:
    """Start a real Kafka and a real PostgreSQL on this machine, or attach to those that run.

    What was once started with --with comes up with the others from then on. With --brokers 3, each event is
    on three brokers, and is acknowledged when two of them have it: one may be lost.

    Example: penstock up --with redis --brokers 3
    """
    from penstock.local import Platform, services_of

    console = Console(markup=False, emoji=False)
    folder = _folder(data)
    services = services_of(folder, also or ())
    platform = Platform(folder, kafka_port, postgres_port, services, redis_port=redis_port, brokers=brokers)
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


def logs(
    service: Annotated[str, typer.Argument(help="kafka, postgres or redis; of three brokers kafka-2")],
    data: Data = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many lines from the end.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
) -> None:
    """Print the end of a service's log.

    Example: penstock logs kafka --lines 100 --follow
    """
    from penstock.local import KNOWN, Platform
    from penstock.local.files import last_lines

    known = {one.name: one.log for one in Platform(_folder(data), services=KNOWN).status()}
    if service not in known:
        raise SettingsError(f"there is no service {service!r}", hint=f"known are {', '.join(known)}")
    path = known[service]
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
