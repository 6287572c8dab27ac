"""penstock lab: the console with the lab in it."""

from contextlib import ExitStack
from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli.doctor import declared_to_doctor
from penstock.cli.ending import ending_in_order
from penstock.cli.modules import loaded_modules
from penstock.cli.output import console as screen
from penstock.settings import Settings


def lab(
    module: Annotated[
        list[str] | None,
        typer.Option("--module", "-m", help="A module that declares topics and pipelines; repeatable."),
    ] = None,
    port: Annotated[int, typer.Option(help="Where to listen.")] = 9480,
    host: Annotated[
        str, typer.Option(help="Any but loopback needs a token (PENSTOCK_CONSOLE_TOKEN).")
    ] = "127.0.0.1",
    read_only: Annotated[bool, typer.Option("--read-only", help="Look, but start nothing.")] = False,
) -> None:
    """Try every idea of stream processing on the real system, in a browser, until Ctrl-C.

    Without a broker, a local Kafka and PostgreSQL are started, and stopped at the end.

    Example: penstock lab
    """
    from penstock.console.server import serve
    from penstock.control.declared_pipeline import DeclaredPipelines
    from penstock.gateway import Declared
    from penstock.lab.catalogue import catalogue
    from penstock.lab.laboratory import Laboratory
    from penstock.lab.leftovers import sweep
    from penstock.lab.services import services
    from penstock.lab.site import LabSite

    settings = Settings.load()
    modules = tuple(dict.fromkeys(module or settings.modules))
    loaded = loaded_modules(modules) if modules else []
    declared = Declared.of(loaded)
    mode = ", read-only" if read_only else ""
    with ExitStack() as stack:
        stack.enter_context(ending_in_order(lambda: None))
        found = stack.enter_context(services(settings, _print))
        sweep(found, _print)
        serve(
            found,
            declared,
            declared_to_doctor(modules),
            DeclaredPipelines.of(modules, loaded),
            host=host,
            port=port,
            read_only=read_only,
            ready=lambda address: _print(f"lab on {address}/#/lab{mode}; Ctrl-C ends it"),
            extensions=(LabSite(Laboratory(catalogue(), found)),),
        )


def _print(line: str) -> None:
    screen.print(escape(line), soft_wrap=True)
