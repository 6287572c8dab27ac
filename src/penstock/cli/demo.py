"""penstock demo: the platform at work, on this machine, in minutes; applications register theirs."""

import typer

from penstock.cli.registered import RegisteredDemos

app = typer.Typer(help="The platform at work, on this machine.", no_args_is_help=True, cls=RegisteredDemos)


@app.callback()
def demo() -> None:
    """The platform at work, on this machine: each demo ends in a report that was checked."""
