"""penstock gateway: serve declared topics and views over HTTP and WebSocket."""

from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli.modules import loaded_modules
from penstock.cli.output import console
from penstock.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("gateway")(gateway)


def gateway(
    module: Annotated[
        list[str] | None,
        typer.Option("--module", "-m", help="A module that declares topics and pipelines; repeatable."),
    ] = None,
    port: Annotated[int, typer.Option(help="Where to listen.")] = 8080,
    host: Annotated[
        str, typer.Option(help="Any but loopback needs a token (PENSTOCK_GATEWAY_TOKEN).")
    ] = "127.0.0.1",
) -> None:
    """Serve what modules declare over HTTP and WebSocket, until Ctrl-C: events in, events and views out.

    Example: penstock gateway -m shop.py --port 8080
    """
    from penstock.gateway import Declared, serve

    settings = Settings.load()
    declared = Declared.of(loaded_modules(tuple(module or settings.modules)))
    names = ", ".join([*declared.topics, *declared.views, *declared.webhooks]) or "nothing"

    def ready(address: str) -> None:
        console.print(f"gateway on {address} serves {escape(names)}; Ctrl-C ends it", soft_wrap=True)

    serve(declared, settings, host=host, port=port, ready=ready)
