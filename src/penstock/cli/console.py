"""penstock console: the web console of the system."""

from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli.doctor import declared_to_doctor
from penstock.cli.modules import loaded_modules
from penstock.cli.output import console as screen
from penstock.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("console")(console)


def console(
    module: Annotated[
        list[str] | None,
        typer.Option("--module", "-m", help="A module that declares topics and pipelines; repeatable."),
    ] = None,
    port: Annotated[int, typer.Option(help="Where to listen.")] = 9480,
    host: Annotated[
        str, typer.Option(help="Any but loopback needs a token (PENSTOCK_CONSOLE_TOKEN).")
    ] = "127.0.0.1",
    read_only: Annotated[bool, typer.Option("--read-only", help="Look, but change nothing.")] = False,
) -> None:
    """Serve the web console, until Ctrl-C: see all streams live, and act on them.

    Example: penstock console -m shop.py
    """
    from penstock.console.server import serve
    from penstock.control.declared_pipeline import DeclaredPipelines
    from penstock.gateway import Declared

    settings = Settings.load()
    modules = tuple(dict.fromkeys(module or settings.modules))
    loaded = loaded_modules(modules) if modules else []
    declared = Declared.of(loaded)

    def ready(address: str) -> None:
        mode = ", read-only" if read_only else ""
        screen.print(f"console on {escape(address)}{mode}; Ctrl-C ends it", soft_wrap=True)

    serve(
        settings,
        declared,
        declared_to_doctor(modules),
        DeclaredPipelines.of(modules, loaded),
        host=host,
        port=port,
        read_only=read_only,
        ready=ready,
    )
