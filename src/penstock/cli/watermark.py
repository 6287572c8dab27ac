"""`penstock watermark`: how late a topic's events come, and the delay that follows."""

import json
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.modules import declared_topic
from penstock.cli.output import Json, console, show
from penstock.cli.underway import underway
from penstock.durations import duration
from penstock.errors import SettingsError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.ops.lateness import Advice, Partition

Module = Annotated[list[str] | None, typer.Option("--module", "-m", help="Where the topic is declared.")]
_COLUMNS = ("partition", "events", "writers", "late at once", "late with it", "worst", "pause", "ahead")


def register(app: typer.Typer) -> None:
    """Add the command of this file to the command line."""
    app.command()(watermark)


def watermark(
    topic: str,
    module: Module = None,
    delay: Annotated[str | None, typer.Option(help="Say how many are late with this delay.")] = None,
    share: Annotated[float, typer.Option(help="The share of events that may be late.")] = 0.001,
    future: Annotated[str, typer.Option(help="Events dated more than this ahead are set apart.")] = "1 hour",
    plot: Annotated[Path | None, typer.Option(help="Draw the shares as SVG into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Measure how late events come, as flows judge it, and recommend a delay and an idle time.

    All that the log and the archive have is read. Example: penstock watermark shop.orders -m shop.py
    """
    from penstock.log.archive.tiers import Tiers
    from penstock.ops import lateness
    from penstock.process import read, session

    settings = Settings.load()
    declared = declared_topic(topic, tuple(module or settings.modules))
    if declared is None:
        raise SettingsError(f"no module declares the topic {topic!r}", hint="name its module with -m")
    asked = None if delay is None else duration(delay, zero=True)
    with underway("starting Spark"):
        spark = session(settings, name=f"watermark {topic}")
    try:
        rows = read(spark, declared, settings, counted="malformed", ordered=False)
        time = declared.time or declared.event.event_time
        partitions = Tiers(settings).offsets(topic)
        with underway(f"reading all of {topic}"):
            found = lateness.measured(rows, time, duration(future), partitions, asked)
    finally:
        spark.stop()
    advice = lateness.advise(found, share)
    if plot is not None:
        plot.write_text(
            lateness.drawn(
                f"Late events of {topic}, by the delay of the watermark", advice.shares, advice.delay
            )
        )
    if as_json:
        typer.echo(json.dumps(_json(found, advice, asked), indent=2, default=_plain))
    else:
        _show(found, advice, asked, share)


def _json(found: "list[Partition]", advice: "Advice", asked: timedelta | None) -> dict[str, object]:
    from penstock.ops.lateness.ladder import LADDER

    return {
        "delays_seconds": [each.total_seconds() for each in LADDER],
        "advice": asdict(advice) | {"watermark": advice.watermark},
        "late_with_asked": None if asked is None else sum(each.at_delay for each in found),
        "partitions": [asdict(each) for each in found],
    }


def _plain(value: object) -> object:
    return value.total_seconds() if isinstance(value, timedelta) else str(value)


def _show(found: "list[Partition]", advice: "Advice", asked: timedelta | None, share: float) -> None:
    from penstock.ops.lateness import plotted
    from penstock.ops.lateness.ladder import spelled

    events = sum(each.events for each in found)
    if not events:
        console.print("the topic has no events to judge by")
        return
    for line in plotted(advice.shares, advice.delay):
        console.print(line, markup=False, highlight=False)
    show([_row(each, advice) for each in found], _COLUMNS, as_json=False, empty="no partitions")
    console.print(f"recommended: {advice.watermark}", markup=False, highlight=False)
    said = [f"{100 * advice.late:.4f} % of {events:,} events are late with it; {100 * share:g} % may be"]
    said.append(f"results wait {spelled(advice.delay)} for events on their way")
    if asked is not None:
        late = sum(each.at_delay for each in found)
        said.append(f"with {spelled(asked)}, {late:,} are late: {100 * late / events:.4f} %")
    said += [f"partition {number} was quiet for longer than idle at the end" for number in advice.quiet]
    said += [f"partition {number} is empty: flows don't wait for it" for number in advice.empty]
    said += [f"dated ahead: {each.ahead:,}, as {', '.join(each.examples)}" for each in found if each.ahead]
    for each in said:
        console.print(f"  {each}", markup=False, highlight=False, soft_wrap=True)


def _row(each: "Partition", advice: "Advice") -> dict[str, object]:
    from penstock.ops.lateness.ladder import LADDER, about

    chosen = LADDER.index(advice.delay) if advice.delay in LADDER else -1
    return {
        "partition": each.number,
        "events": each.events,
        "writers": each.writers,
        "late at once": each.late[0],
        "late with it": each.late[chosen],
        "worst": about(each.worst),
        "pause": about(each.gaps[1]),
        "ahead": each.ahead,
    }
