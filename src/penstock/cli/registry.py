"""penstock registry: serve the schema registry over HTTP."""

from typing import Annotated

import typer

from penstock.cli.output import console
from penstock.settings import Settings, reveal


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("registry")(registry)


def registry(
    port: Annotated[int, typer.Option(help="Where to listen.")] = 8081,
    host: Annotated[
        str, typer.Option(help="Any but loopback needs a token (PENSTOCK_REGISTRY_TOKEN).")
    ] = "127.0.0.1",
) -> None:
    """Serve the schema registry, by Confluent's paths, until Ctrl-C; any number of them agree.

    Example: penstock registry --port 8081
    """
    from penstock.registry import Limits, Registry, check_address, serve

    settings = Settings.load()
    limits, given = Limits.of(settings), settings.registry.get("token")
    token = None if given is None else reveal(given)
    check_address(host, token)
    with Registry(settings) as found:
        console.print(f"schema registry on http://{host}:{port}; Ctrl-C ends it")
        serve(found, host=host, port=port, token=token, limits=limits)
