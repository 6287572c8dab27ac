"""penstock registry: serve the schema registry over HTTP."""

from typing import Annotated

import typer

from penstock.cli.output import console
from penstock.registry import Registry, serve
from penstock.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("registry")(registry)


def registry(
    port: Annotated[int, typer.Option(help="Where to listen.")] = 8081,
    host: Annotated[
        str, typer.Option(help="Loopback, unless you put it behind a gateway of yours.")
    ] = "127.0.0.1",
) -> None:
    """Serve the schema registry, by Confluent's paths, until Ctrl-C; any number of them agree.

    Example: penstock registry --port 8081
    """
    with Registry(Settings.load()) as found:
        console.print(f"schema registry on http://{host}:{port}; Ctrl-C ends it")
        serve(found, host=host, port=port)
