"""`penstock why`: the events behind a result."""

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.modules import declared_pipelines
from penstock.cli.output import Json, console, plain
from penstock.cli.underway import underway
from penstock.errors import FlowError, SettingsError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.ops.why import Answer
    from penstock.pipeline import Flow, Pipeline

Module = Annotated[list[str] | None, typer.Option("--module", "-m", help="Where the flows are declared.")]
_RECORD = re.compile(r"(\d+)/(\d+)")
_SHOWN = 50  # events


def register(app: typer.Typer) -> None:
    """Add the command of this file to the command line."""
    app.command()(why)


def why(
    target: Annotated[str, typer.Argument(help="The topic or table that a flow writes.")],
    key: Annotated[list[str] | None, typer.Argument(help="The key of the result, column by column.")] = None,
    module: Module = None,
    record: Annotated[
        str | None, typer.Option(help="Where the result stands in its topic: partition/offset.")
    ] = None,
    where: Annotated[str | None, typer.Option(help="A condition on its columns, in SQL.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often the flow may be run to leave events out.")] = 60,
    export: Annotated[Path | None, typer.Option(help="Write the events and the result as a test.")] = None,
    as_json: Json = False,
) -> None:
    """Show the events that a result came of, proved by recomputing it from just these.

    Exits with 65 if that does not give the same result.

    Of several results with the key, the last is explained. Example: penstock why fraud-alerts card-17 -m
    penstock.apps.fraud.pipeline
    """
    from penstock.ops import why as asking
    from penstock.process import session

    settings = Settings.load()
    pipelines = declared_pipelines(tuple(module or settings.modules))
    question = asking.Question(target, tuple(key or ()), _record(record), where, runs)
    with underway("starting Spark"):
        spark = session(settings, name=f"why {target}", shuffle=1)
    try:
        with underway(f"looking for the events behind a result of {target}"):
            answer = asking.why(question, list(pipelines.values()), settings, spark)
        if export is not None:
            with underway(f"writing {export}"):
                _export(answer, pipelines, settings, spark, export)
    finally:
        spark.stop()
    if as_json:
        typer.echo(json.dumps(asdict(answer) | {"summary": answer.summary}, default=plain, indent=2))
    else:
        _show(answer)
        if export is not None:
            console.print(f"written to {export}", markup=False)
    if not answer.proved:
        raise typer.Exit(65)


def _record(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = _RECORD.fullmatch(text)
    if found is None:
        raise SettingsError(f"--record is {text!r}, expected partition/offset", hint="write --record 0/17")
    return int(found[1]), int(found[2])


def _export(
    answer: "Answer", pipelines: "dict[tuple[str, str], Pipeline]", settings: Settings, spark: Any, file: Path
) -> None:
    from penstock.identity import Identity
    from penstock.ops.why import exported
    from penstock.ops.why.reading import Reading
    from penstock.testing.recomputed import plain as values

    made = Identity(answer.made.flow)
    (module, variable), flow = _declared(made.pipeline, made.flow, pipelines)
    tables = Reading(made, flow, settings, spark).tables()
    looked_up = {name: [values(row) for row in table.collect()] for name, table in tables.items()}
    file.write_text(exported(answer, flow, module, variable, looked_up))


def _declared(
    pipeline: str, flow: str, pipelines: "dict[tuple[str, str], Pipeline]"
) -> "tuple[tuple[str, str], Flow]":
    for place, found in pipelines.items():
        if found.name == pipeline and flow in found.flows:
            return place, found.flows[flow]
    raise FlowError(f"the modules declare no pipeline {pipeline!r} with a flow {flow!r}")


def _show(answer: "Answer") -> None:
    place = f" at {answer.place}" if answer.place else ""
    made = answer.made
    console.print(
        f"[bold]{answer.target}[/bold]{place}, made by {made.flow}, version {made.version}",
        highlight=False,
        soft_wrap=True,
    )
    for name, value in answer.result.items():
        console.print(f"  {name}: {_spelled(value)}", markup=False, highlight=False, soft_wrap=True)
    console.print(answer.summary, markup=False, highlight=False, soft_wrap=True)
    for name, value in answer.instead.items():
        console.print(
            f"  {name}, recomputed: {_spelled(value)}", markup=False, highlight=False, soft_wrap=True
        )
    console.print(_events(answer))
    if len(answer.events) > _SHOWN:
        console.print(f"and {len(answer.events) - _SHOWN:,} more: --json shows them all", markup=False)
    if makers := sorted({each.made.flow for each in answer.events if each.made is not None}):
        topics = sorted({each.place.topic for each in answer.events if each.made is not None})
        console.print(
            f"{', '.join(makers)} made some of these: ask why of {', '.join(topics)}, with --record",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )


def _events(answer: "Answer") -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("argument", "event", "written", "holds"):
        table.add_column(name, overflow="fold")
    for each in answer.events[:_SHOWN]:
        written = each.written.isoformat(sep=" ", timespec="milliseconds")
        held = {name: value for name, value in each.values.items() if value is not None}
        texts = (each.argument, str(each.place), written, _spelled(held))
        table.add_row(*map(Text, texts))
    return table


def _spelled(value: object) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, default=plain, ensure_ascii=False)
    return plain(value) if value is not None else "–"
