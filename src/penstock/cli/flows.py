"""`penstock run`, `stop`, `verify`, `rebuild`, `snapshot` and `forget`: pipelines at work."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from penstock.cli.json_log import JsonLog
from penstock.cli.modules import declared_pipeline
from penstock.cli.output import Json, console, show
from penstock.cli.underway import Report, until_first_report
from penstock.control.process_identity import is_over
from penstock.control.run_registry import RunRegistry
from penstock.errors import FlowError, SettingsError
from penstock.identity import Identity
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.pipeline import Conservation


class LogFormat(StrEnum):
    """How `penstock run` reports."""

    TEXT = "text"
    JSON = "json"


Module = Annotated[list[str] | None, typer.Option("--module", "-m", help="Where the pipeline is declared.")]
_PATIENCE = 120.0
_TIMES = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"]
_COLUMNS = ("flow", "read", "expected", "found", "missing", "repeated", "unexpected", "waiting")


def register(app: typer.Typer) -> None:
    """Add the commands of this file to the command line."""
    for command in (run, stop, verify, rebuild, snapshot, forget):
        app.command()(command)


def run(
    pipeline: str,
    module: Module = None,
    mode: Annotated[str | None, typer.Option(help="stream, realtime or replay, for all flows.")] = None,
    flow: Annotated[list[str] | None, typer.Option("--flow", help="Run only this flow.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Work on what is there, then end.")] = False,
    from_ledger: Annotated[
        bool, typer.Option("--from-ledger", help="Flows that lost their checkpoint go on where the sink is.")
    ] = False,
    begin_anew: Annotated[
        bool,
        typer.Option("--begin-anew", help="Forget checkpoints, state and ledgers; results stay."),
    ] = False,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", help="A setting of Spark's: spark.name=value.")
    ] = None,
    spark_log: Annotated[str, typer.Option(help="Spark's own log: OFF, ERROR, WARN or INFO.")] = "OFF",
    log: Annotated[
        LogFormat, typer.Option(envvar="PENSTOCK_LOG", help="Lines for people, or a JSON object each.")
    ] = LogFormat.TEXT,
) -> None:
    """Run a pipeline's flows until Ctrl-C or `penstock stop`; each ends with its batch.

    Example: penstock run fraud -m shop.py --mode realtime
    """
    from penstock.pipeline import Runner

    settings = Settings.load()
    settings = replace(settings, spark={**settings.spark, **_pairs(conf or [])})
    found = declared_pipeline(pipeline, tuple(module or settings.modules))
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with RunRegistry(settings).holding(pipeline), _reporting(log, pipeline) as report:
        runner = Runner(
            found,
            settings,
            mode=mode,  # type: ignore[arg-type]
            flows=flow,
            once=once,
            from_ledger=from_ledger,
            begin_anew=begin_anew,
            report=report,
        )
        if spark_log != "OFF":
            runner.spark.sparkContext.setLogLevel(spark_log)
        with runner:
            while not stopped.is_set() and not runner.wait(0.2):
                pass
            report(None, "stopping" if stopped.is_set() else "done")


def stop(pipeline: str) -> None:
    """Stop a pipeline that `penstock run` runs on this machine; its flows end with their batch.

    Example: penstock stop fraud
    """
    process = RunRegistry(Settings.load()).stoppable(pipeline)
    if process is None:
        console.print(f"{pipeline} is not running", markup=False)
        raise typer.Exit(3)
    process.terminate()
    deadline = time.monotonic() + _PATIENCE
    while not is_over(process):
        if time.monotonic() > deadline:
            raise FlowError(f"pipeline {pipeline!r} did not end within {_PATIENCE:.0f} s")
        time.sleep(0.1)
    console.print(f"stopped {pipeline}", markup=False)


def verify(pipeline: str, module: Module = None, as_json: Json = False) -> None:
    """Recompute a pipeline's results from the log and compare them with what was written.

    Example: penstock verify fraud -m shop.py
    """
    from penstock import pipeline as pipelines
    from penstock.process import session

    settings = Settings.load()
    found = declared_pipeline(pipeline, tuple(module or settings.modules))
    spark = session(settings, name=f"verify {pipeline}")
    try:
        verifications = pipelines.verify(found, settings, spark, report=None if as_json else report)
    finally:
        spark.stop()
    show(verifications, _COLUMNS, as_json=as_json, empty="no flows")
    for idle in (each.flow for each in verifications if not each.has_run and not as_json):
        console.print(f"  {idle}: it has not run, there is nothing to compare", markup=False)
    for verification in verifications:
        if verification.windows is not None and not as_json:
            console.print(
                f"  {verification.flow}: {_sum(verification.windows)}", highlight=False, markup=False
            )
        for example in verification.examples if not as_json else ():
            console.print(f"  {verification.flow}: {example}", highlight=False, markup=False)
    if not all(verification.ok for verification in verifications):
        raise typer.Exit(65)
    if not as_json:
        console.print("[green]nothing is missing, nothing unexpected[/green]")


def rebuild(
    pipeline: str,
    flow: str,
    module: Module = None,
    until: Annotated[
        datetime | None,
        typer.Option(
            help="Leave out what the log took in from then on (UTC unless it says).", formats=_TIMES
        ),
    ] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Do without events that are not in the log any more.")
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Give up a rebuild that was begun before, and begin anew.")
    ] = False,
) -> None:
    """Make a flow's target again from the log, beside the one at work, and put it in its place.

    The flow may run while it is built; to be replaced, it has to be stopped. Interrupted, the same command
    goes on. Example: penstock rebuild shop orders --until 2026-11-17T09:30:00
    """
    from penstock import pipeline as pipelines
    from penstock.process import session

    settings = Settings.load()
    found = declared_pipeline(pipeline, tuple(module or settings.modules))
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    spark = session(settings, name=f"rebuild {pipeline}.{flow}")
    try:
        done = pipelines.rebuild(
            found,
            flow,
            settings,
            spark,
            until=None if until is None else _in_utc(until),
            partial=partial,
            discard=discard,
            may_swap=lambda: RunRegistry(settings).process(pipeline) is None,
            is_stopped=stopped.is_set,
            report=report,
        )
    finally:
        spark.stop()
    if stopped.is_set() and not done.swapped:
        console.print("interrupted: the same command goes on")
        raise typer.Exit(130)
    if not done.swapped:
        console.print(
            f"built; {pipeline} runs: `penstock stop {pipeline}`, then the same command puts it in place",
            markup=False,
        )
        raise typer.Exit(75)
    console.print(f"{flow} has what was rebuilt; it goes on behind it when {pipeline} runs", markup=False)


def snapshot(pipeline: str, flow: str, module: Module = None) -> None:
    """Keep the state of a flow that is a view, as the log has it now: its next rebuild begins with it.

    The flow may run meanwhile. Example: penstock snapshot bank balances -m penstock.apps.bank.pipeline
    """
    from penstock import pipeline as pipelines
    from penstock.process import session

    settings = Settings.load()
    found = declared_pipeline(pipeline, tuple(module or settings.modules))
    spark = session(settings, name=f"snapshot {pipeline}.{flow}")
    try:
        taken = pipelines.snapshot(found, flow, settings, spark)
    finally:
        spark.stop()
    reached = sum(taken.positions.values())
    console.print(f"{flow}: the state of {reached:,} offsets is kept", markup=False)


def _in_utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def forget(
    pipeline: str,
    flow: str,
    connection: Annotated[
        str | None, typer.Option(help="Whose database has its ledger; the default one unless it is said.")
    ] = None,
    namespace: Annotated[
        str | None, typer.Option(help='Whose flow it is; that of the settings unless it is said; "" is none.')
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> None:
    """Remove what a flow that is gone for good has left: checkpoint, state, ledger, positions. Results stay.

    Flows behind it stop waiting for what it has not read. Example: penstock forget shop old_bill
    """
    from penstock import pipeline as pipelines
    from penstock.process import session

    settings = Settings.load()
    if namespace is not None:
        settings = replace(settings, namespace=namespace)
    label = Identity.of(settings.namespace, pipeline, flow).label
    RunRegistry(settings).refuse_held(pipeline)
    if not yes:
        typer.confirm(f"Forget all that flow {label!r} knows?", abort=True)
    spark = session(settings, name=f"forget {label}")
    try:
        for each in pipelines.forget(spark, settings, pipeline, flow, connection=connection):
            console.print(f"removed {each}", markup=False)
        console.print(
            "if it wrote a target of your own, its ledger is still there: "
            "`penstock run … --begin-anew` forgets it"
        )
    finally:
        spark.stop()


def _sum(rows: "Conservation") -> str:
    """Where the rows of windows are."""
    sign = "=" if rows.exact else "≠"
    return (
        f"{rows.taken:,} rows {sign} {rows.emitted:,} in results + {rows.waiting:,} waiting "
        f"+ {rows.sent:,} in side outputs + {rows.dropped:,} dropped"
    )


def _pairs(given: list[str]) -> dict[str, str]:
    pairs = {name: value for name, found, value in (each.partition("=") for each in given) if found}
    if len(pairs) < len(given):
        raise SettingsError(f"--conf is {given}, expected spark.name=value")
    return pairs


def report(flow: str | None, what: str, screen: Console = console) -> None:
    """Print what happened to a flow."""
    if flow is None:
        screen.print(what)
        return
    line = f"[dim]{time.strftime('%H:%M:%S')}[/dim] [bold]{escape(flow)}[/bold] {escape(what)}"
    screen.print(line, highlight=False, soft_wrap=True)


@contextmanager
def _reporting(log: LogFormat, pipeline: str) -> Iterator[Report]:
    """What a runner reports to; people also see that a slow start is no hang."""
    if log is LogFormat.TEXT:
        with until_first_report(report, f"{pipeline}: no batch has ended yet") as heard:
            yield heard
    else:
        found = JsonLog(pipeline)
        found.take_over()
        yield found.report
