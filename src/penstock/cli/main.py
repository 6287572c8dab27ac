"""The command line: one app, its groups of commands, and errors as a person would put them."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from penstock.cli import (
    archive,
    capacity,
    capture,
    console,
    demo,
    doctor,
    flows,
    gateway,
    groups,
    inlet,
    local,
    metrics,
    registry,
    replace,
    replica,
    schemas,
    search,
    state,
    store,
    topics,
    watermark,
    why,
)
from penstock.cli.registered import RegisteredCommands
from penstock.errors import PenstockError

app = typer.Typer(
    name="penstock",
    cls=RegisteredCommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
local.register(app)
flows.register(app)
doctor.register(app)
replace.register(app)
registry.register(app)
gateway.register(app)
console.register(app)
metrics.register(app)
search.register(app)
why.register(app)
watermark.register(app)
capacity.register(app)
app.add_typer(demo.app, name="demo")
app.add_typer(archive.app, name="archive")
app.add_typer(capture.app, name="capture")
app.add_typer(inlet.app, name="inlet")
app.add_typer(replica.app, name="replica")
app.add_typer(topics.app, name="topics")
app.add_typer(groups.app, name="groups")
app.add_typer(schemas.app, name="schemas")
app.add_typer(state.app, name="state")
app.add_typer(store.app, name="store")


def _show_version(wanted: bool) -> None:
    from importlib.metadata import version

    if wanted:
        typer.echo(f"penstock {version('penstock')}")
        raise typer.Exit


Version = typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")


@app.callback()
def penstock(show_version: Annotated[bool, Version] = False) -> None:
    """Penstock: typed events, a replayable log and flows on Spark, on this machine or a cluster."""


def run() -> None:
    """Run the command line; a known error is a message and an exit code, not a traceback."""
    try:
        app()
    except PenstockError as error:
        console = Console(stderr=True, emoji=False)
        line = f"[red]error[/red] [dim]{error.id}[/dim]: {escape(error.message)}"
        console.print(line, highlight=False, soft_wrap=True)
        for note in getattr(error, "__notes__", ()):
            console.print(f"  {escape(note)}", highlight=False, soft_wrap=True)
        if error.hint:
            console.print(f"  [cyan]→[/cyan] {escape(error.hint)}", highlight=False, soft_wrap=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
