"""penstock archive: a topic's log in Parquet files, as it ages."""

import signal
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from penstock.cli.output import Json, console, show
from penstock.cli.supervised import supervise
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.archive import Checked

app = typer.Typer(help="Archives: a topic's history for ever, in Parquet files.", no_args_is_help=True)
_COLUMNS = ("topic", "state", "to", "segments", "archived", "behind", "kafka", "keep")


@app.command()
def add(
    topic: str,
    to: Annotated[str, typer.Option(help="A folder that every reader sees, or s3://bucket/prefix.")],
    connection: Annotated[
        str | None, typer.Option(help="Of penstock.toml, for S3: url, region, access_key, secret_key.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="How long Kafka keeps what is archived; 7 days by default.")
    ] = None,
    every: Annotated[
        str | None, typer.Option(help="How often what is new is archived; every 10 minutes by default.")
    ] = None,
    retention_forever: Annotated[
        bool, typer.Option("--retention-forever", help="Let Kafka delete nothing by itself.")
    ] = False,
    update: Annotated[bool, typer.Option("--update", help="Change --keep and --every of one there.")] = False,
) -> None:
    """Declare a topic's archive; `penstock archive run` archives it.

    Example: penstock archive add orders --to /srv/archive --keep "7 days" --retention-forever
    """
    from penstock.archive import add as added

    target = to if to.startswith("s3://") else str(Path(to).absolute())
    made = added(
        topic,
        target,
        Settings.load(),
        connection=connection,
        keep=keep,
        every=every,
        retention_forever=retention_forever,
        update=update,
    )
    _print(f"{topic} → {made.address}")
    _print(f"Kafka keeps what is archived for {made.keep}; start it: penstock archive run {topic}")


@app.command()
def run(
    topics: Annotated[list[str] | None, typer.Argument(help="All that have an archive by default.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Archive what is there, and end.")] = False,
    skip_lost: Annotated[
        bool, typer.Option("--skip-lost", help="Go on behind records that Kafka deleted before.")
    ] = False,
) -> None:
    """Archive topics until Ctrl-C: what is new every so often, and what is old leaves Kafka.

    The work is done by a child process, which is started again if it is killed or breaks.

    Example: penstock archive run orders --once
    """
    settings = Settings.load()
    is_first = True if once else supervise(_print)
    from penstock.archive import ArchiveRunner

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    runner = ArchiveRunner(settings, topics or (), stopped, skip_lost=skip_lost and is_first, log=_print)
    runner.run(once=once)
    if stopped.is_set():
        _print("stopped")


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the archives: what they hold, how far they are behind, what Kafka still has.

    Example: penstock archive list
    """
    from penstock.archive.status import status as status_of
    from penstock.log.archive.declarations import Declarations

    settings = Settings.load()
    rows = [status_of(settings, name) for name in Declarations(settings).names()]
    show(rows, _COLUMNS, as_json=as_json, empty="no archives yet: `penstock archive add` makes one")


@app.command()
def status(topic: str, as_json: Json = False) -> None:
    """Show one archive: its segments, lag, process and last error.

    Example: penstock archive status orders
    """
    from penstock.archive.status import status as status_of

    found = asdict(status_of(Settings.load(), topic))
    if as_json:
        show([found], tuple(found), as_json=True, empty="")
        return
    show([{"": key, "value": value} for key, value in found.items()], ("", "value"), as_json=False, empty="")


@app.command()
def check(topic: str, as_json: Json = False) -> None:
    """Read every file of an archive, add up its ranges, and compare them with Kafka.

    It ends with 65 if a range is damaged or lost.

    Example: penstock archive check orders
    """
    from penstock.archive import check as checked

    with Progress(console=console, transient=True, disable=as_json) as progress:
        bar = progress.add_task("reading segments", total=None)
        found = checked(topic, Settings.load(), progress=lambda _: progress.advance(bar))
    if as_json:
        rows = [{**asdict(each), "checksum": str(each.checksum), "ok": each.ok} for each in found]
        show(rows, (), as_json=True, empty="")
    else:
        for each in found:
            _show(each)
        _print("whole" if all(each.ok for each in found) else "not whole")
    if not all(each.ok for each in found):
        raise typer.Exit(65)


@app.command()
def remove(topic: str, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Forget an archive: its files stay, but readers no longer find them.

    Example: penstock archive remove orders --yes
    """
    from penstock.log.archive.declarations import Declarations

    known = Declarations(Settings.load())
    archive = known.get(topic)
    if not yes:
        typer.confirm(f"Forget the archive of {topic!r}? Its readers then see what Kafka has.", abort=True)
    known.remove(topic)
    _print(f"removed; its files stay in {archive.address}")


def _show(checked: "Checked") -> None:
    files = "1 segment" if checked.segments == 1 else f"{checked.segments:,} segments"
    _print(
        f"partition {checked.partition}: offsets {checked.first:,} to {checked.next:,} in {files}, "
        f"{checked.checksum.count:,} records, {checked.compared:,} of them the same in Kafka; "
        f"checksum {checked.checksum.sum:032x}"
    )
    for each in checked.findings:
        _print(f"  {each.kind}: offsets {each.first:,} to {each.next:,}: {each.what}")


def _print(line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
