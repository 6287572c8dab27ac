"""`penstock replay`, `shadow`, `diff`, `swap` and `rollback`: a flow is replaced by another version."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.flows import Module, report
from penstock.cli.modules import declared_pipeline, declared_topic
from penstock.cli.output import Json, console, errors, show
from penstock.cli.replay_screen import ReplayScreen
from penstock.cli.underway import underway
from penstock.control.run_registry import RunRegistry, shadow_of
from penstock.errors import SettingsError
from penstock.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.pipeline import Difference, Pipeline, Runner, Swapped
    from penstock.pipeline.flow_run import Reporter

By = Annotated[list[str] | None, typer.Option("--by", help="A column of the key by which rows are compared.")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="A column that is not compared.")]
Flows = Annotated[list[str] | None, typer.Option("--flow", help="Replay only this flow.")]
_TRIAL = ("flow", "read", "hits", "found", "labelled", "right", "precision", "recall")
_COUNTS = ("flow", "same", "different", "only_live", "only_shadow", "windows")


def register(app: typer.Typer) -> None:
    """Add the commands of this file to the command line."""
    for command in (replay, shadow, diff, swap, rollback):
        app.command()(command)
    app.command("try")(try_on_history)


def replay(pipeline: str, module: Module = None, flow: Flows = None) -> None:
    """Run flows over the whole log, or its archive, at full speed, and show how long it takes.

    Each is one batch, written once into its target. Example: penstock replay fraud -m shop.py --flow large
    """
    from penstock.pipeline import Runner
    from penstock.pipeline.replay_progress import ReplayProgress
    from penstock.pipeline.runner import chosen

    settings, found = _declared(pipeline, module)
    with RunRegistry(settings).holding(pipeline, "replay"), _stopping() as stopped:
        runner = Runner(found, settings, mode="replay", flows=flow, once=True, report=report)
        progress, began = ReplayProgress(runner.spark, settings, chosen(found, flow)), time.monotonic()
        with runner, ReplayScreen(progress):
            _wait(runner, stopped)
    if stopped.is_set():
        console.print("interrupted: the same command goes on")
        raise typer.Exit(130)
    written = [name for name, run in runner.runs.items() if run.has_written]
    if written:  # what was done before has said so
        count, took = sum(progress.there[name] for name in written), time.monotonic() - began
        console.print(f"replayed {count:,} records in {took:,.1f} s", markup=False)


def shadow(
    pipeline: str,
    flow: str,
    module: Module = None,
    once: Annotated[bool, typer.Option("--once", help="Work on what is there, then end.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Do without events that are not in the log any more.")
    ] = False,
    discard: Annotated[
        bool, typer.Option("--discard", help="Give up the shadow that was begun, and end: nothing is run.")
    ] = False,
) -> None:
    """Run a new version of a flow beside the one at work, into a target of its own, until Ctrl-C.

    It reads the log from its beginning; the flow at work is not touched. Started again, it goes on.
    Example: penstock shadow shop large -m new_shop.py
    """
    from penstock import pipeline as pipelines

    settings, found = _declared(pipeline, module)
    with (
        RunRegistry(settings).holding(shadow_of(pipeline, flow)),
        _stopping() as stopped,
        _spark(settings) as spark,
    ):
        if discard:
            was_there = pipelines.discard_shadow(found, flow, settings, spark)
            said = f"gave the shadow of {flow} up" if was_there else f"{flow} has no shadow"
            console.print(said, markup=False)
            return
        job = pipelines.shadow(found, flow, settings, spark, partial=partial)
        runner = pipelines.Runner(found, settings, jobs=[job], once=once, spark=spark, report=report)
        with runner:
            _wait(runner, stopped)
    console.print(f"compare it: `penstock diff {pipeline} {flow}`", markup=False)


def diff(
    pipeline: str,
    flow: str,
    module: Module = None,
    by: By = None,
    ignore: Ignore = None,
    at_most: Annotated[
        int | None, typer.Option("--at-most", help="End with 65 if more keys differ than this.")
    ] = None,
    examples: Annotated[int, typer.Option(help="How many examples to show.")] = 5,
    as_json: Json = False,
) -> None:
    """Compare what a flow has written with what its shadow has, by key and window, with examples.

    Example: penstock diff shop large -m new_shop.py --at-most 10
    """
    from penstock import pipeline as pipelines

    settings, found = _declared(pipeline, module)
    with _spark(settings) as spark, underway(f"comparing {flow} with its shadow"):
        seen = pipelines.diff(
            found,
            flow,
            settings,
            spark,
            by=by or (),
            ignore=ignore or (),
            shown=examples,
            report=_reporter(as_json),
        )
    _show(seen, as_json=as_json)
    if not seen.exact:
        _noted(
            f"the two are {seen.apart:,} events apart: stop the shadow, then the pipeline, and "
            f"`penstock swap {pipeline} {flow} --at-most N` compares them at one position",
            as_json=as_json,
        )
        raise typer.Exit(75)
    if at_most is not None and seen.differences > at_most:
        raise typer.Exit(65)


def swap(
    pipeline: str,
    flow: str,
    module: Module = None,
    at_most: Annotated[
        int | None, typer.Option("--at-most", help="Swap nothing if more keys differ than this.")
    ] = None,
    by: By = None,
    ignore: Ignore = None,
    as_json: Json = False,
) -> None:
    """Put a flow's shadow in the place of the version at work, from where that one stands in the log.

    Stop the pipeline first. The former version is kept for a rollback until the next swap. Interrupted, the
    same command completes it. Example: penstock swap shop large -m new_shop.py --at-most 0
    """
    from penstock import pipeline as pipelines

    settings, found = _declared(pipeline, module)
    with (
        _alone(settings, pipeline, flow, "swap"),
        _spark(settings) as spark,
        underway(f"bringing the shadow of {flow} to the place of the flow"),
    ):
        done = pipelines.swap(
            found,
            flow,
            settings,
            spark,
            at_most=at_most,
            by=tuple(by or ()),
            ignore=tuple(ignore or ()),
            report=_reporter(as_json),
        )
    if as_json:
        show([done], (), as_json=True, empty="")
    elif done.difference is not None:
        _show(done.difference, as_json=False)
    if not done.swapped:
        _noted("nothing was swapped: more keys differ than --at-most allows", as_json=as_json)
        raise typer.Exit(65)
    _said(done, f"the new version of {flow} is in place", as_json=as_json)


def rollback(pipeline: str, flow: str, module: Module = None) -> None:
    """Put the former version of a flow back; it goes on from where it stood, with the code of then.

    Stop the pipeline first. Example: penstock rollback shop large -m shop.py
    """
    from penstock import pipeline as pipelines

    settings, found = _declared(pipeline, module)
    with (
        _alone(settings, pipeline, flow, "rollback"),
        _spark(settings) as spark,
        underway(f"bringing the former version of {flow} back"),
    ):
        done = pipelines.rollback(found, flow, settings, spark, report=report)
    _said(done, f"the former version of {flow} is back in place")


def try_on_history(
    pipeline: str,
    flow: str,
    module: Module = None,
    labels: Annotated[str | None, typer.Option(help="A declared topic of what should be found.")] = None,
    on: Annotated[list[str] | None, typer.Option("--on", help="The column that labels are about.")] = None,
    where: Annotated[str | None, typer.Option(help="Which labels count, as a condition in SQL.")] = None,
    as_json: Json = False,
) -> None:
    """Try a flow on the whole log without writing anything: hits, and precision and recall by labels.

    Example: penstock try fraud suspicious -m rules.py --labels chargebacks --on card
    """
    from penstock import pipeline as pipelines

    settings, found = _declared(pipeline, module)
    modules = tuple(module or settings.modules)
    with _spark(settings) as spark, underway(f"trying {flow} on the log"):
        rows = None if labels is None else _labelled(spark, settings, labels, modules, where)
        tried = pipelines.try_on_history(found, flow, settings, spark, on=on or (), labels=rows)
    judged = {**vars(tried), "precision": tried.precision, "recall": tried.recall}
    spelled = {**judged, **{name: _share(judged[name]) for name in ("precision", "recall")}}
    show([judged if as_json else spelled], _TRIAL, as_json=as_json, empty="")
    for kind in ("missed", "false") if not as_json else ():
        for key in judged[kind]:
            console.print(f"  {kind} {key}", markup=False, highlight=False)


def _labelled(
    spark: "SparkSession", settings: Settings, name: str, modules: tuple[str, ...], where: str | None
) -> "DataFrame":
    from penstock.process import read

    topic = declared_topic(name, modules)
    if topic is None:
        raise SettingsError(
            f"labels are {name!r}, which is no topic of the modules {', '.join(modules)}",
            hint="declare the topic there; in Python, `try_on_history` takes any DataFrame",
        )
    found = read(spark, topic, settings)
    return found if where is None else found.where(where)


def _share(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.1f} %"


def _declared(pipeline: str, module: list[str] | None) -> "tuple[Settings, Pipeline]":
    settings = Settings.load()
    return settings, declared_pipeline(pipeline, tuple(module or settings.modules))


@contextmanager
def _alone(settings: Settings, pipeline: str, flow: str, what: str) -> Iterator[None]:
    """Neither the pipeline nor the shadow runs on this machine, nor is started meanwhile."""
    held = RunRegistry(settings)
    with held.holding(pipeline, what), held.holding(shadow_of(pipeline, flow), what):
        yield


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    yield stopped


@contextmanager
def _spark(settings: Settings) -> "Iterator[SparkSession]":
    from penstock.process import session

    with underway("starting Spark"):
        spark = session(settings, name="replace")
    try:
        yield spark
    finally:
        spark.stop()


def _wait(runner: "Runner", stopped: threading.Event) -> None:
    while not stopped.is_set() and not runner.wait(0.2):
        time.sleep(0)


def _show(seen: "Difference", *, as_json: bool) -> None:
    show([seen], _COUNTS, as_json=as_json, empty="")
    if as_json:
        return
    console.print(f"  compared by {', '.join(seen.key) or 'all columns'}", markup=False, highlight=False)
    for each in seen.examples:
        console.print(f"  {each.kind} {each.key}", markup=False, highlight=False)
        for side, row in (("live", each.live), ("shadow", each.shadow)):
            if row is not None:
                console.print(f"    {side:6} {row}", markup=False, highlight=False, soft_wrap=True)


def _said(done: "Swapped", what: str, *, as_json: bool = False) -> None:
    reached = sum(offset for each in done.position.values() for offset in each.values())
    _noted(f"{what}, at {reached:,} offsets; run the pipeline with its code", as_json=as_json)


def _reporter(as_json: bool) -> "Reporter":
    """Reports go beside the document, if one is printed."""
    return partial(report, screen=errors) if as_json else report


def _noted(text: str, *, as_json: bool) -> None:
    (errors if as_json else console).print(text, markup=False)
