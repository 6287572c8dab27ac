"""penstock state: what flows keep in mind."""

import json
from typing import Annotated

import typer

from penstock.cli.output import Json, console, plain
from penstock.settings import Settings

app = typer.Typer(help="The state of flows, as their checkpoints hold it.", no_args_is_help=True)


@app.callback()
def state() -> None:
    """The state of flows, as their checkpoints hold it."""


@app.command()
def show(
    pipeline: str,
    flow: str,
    key: Annotated[list[str], typer.Argument(help="The key; of several columns, each of them.")],
    batch: Annotated[int | None, typer.Option(help="As it was after this batch.")] = None,
    as_json: Json = False,
) -> None:
    """Show what a flow keeps under a key; the flow may be running.

    Example: penstock state show fraud suspicious card-17
    """
    from penstock.pipeline import stored_state
    from penstock.process import session

    settings = Settings.load()
    spark = session(settings, name=f"state of {pipeline}")
    try:
        found = stored_state(spark, settings, f"{pipeline}.{flow}", key, batch=batch)
    finally:
        spark.stop()
    rows = [vars(each) for each in found]
    if as_json:
        typer.echo(json.dumps(rows, default=plain, indent=2))
    elif not rows:
        console.print(f"{flow} keeps nothing under {' '.join(key)}", markup=False)
    for each in rows if not as_json else ():
        console.print_json(data=each, default=plain)
