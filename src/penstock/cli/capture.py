"""penstock capture: every change of a database's tables as records of topics."""

import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.capture_screen import CaptureScreen
from penstock.cli.output import Json, console, show
from penstock.cli.supervised import supervise
from penstock.errors import CaptureError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.capture import Capture, Store

app = typer.Typer(help="Change capture: a database's tables as topics.", no_args_is_help=True)
_PATIENCE = 20.0  # seconds
_COLUMNS = ("capture", "state", "behind", "retained", "seconds", "changes", "snapshot")
_FIXED = (
    "format",
    "prefix",
    "slot",
    "publication",
    "connection",
    "partitions",
    "decimals",
    "intervals",
    "transactions",
)


@app.command()
def add(
    name: str,
    tables: Annotated[str, typer.Option(help="Which ones, with schema: public.orders,public.products")] = "",
    connection: Annotated[
        str | None, typer.Option(help="Of penstock.toml; the local database if none.")
    ] = None,
    format: Annotated[str, typer.Option(help="debezium-json, debezium-avro or flat-json.")] = "debezium-json",
    snapshot: Annotated[str, typer.Option(help="initial, never or when-needed.")] = "initial",
    prefix: Annotated[str, typer.Option(help="What topics begin with; the name if none is given.")] = "",
    partitions: Annotated[int, typer.Option(help="Of each topic.")] = 1,
    compaction_lag: Annotated[str, typer.Option(help="How long every change is kept.")] = "7 days",
    decimals: Annotated[str, typer.Option(help="string, precise or double.")] = "string",
    outbox: Annotated[str, typer.Option(help="A table whose rows are events of their own.")] = "",
    messages: Annotated[str, typer.Option(help="Prefixes of pg_logical_emit_message with events.")] = "",
    transactions: Annotated[
        bool, typer.Option("--transactions", help="Write the transactions to a topic, too.")
    ] = False,
    slot: Annotated[str, typer.Option(help="The replication slot; penstock_NAME if none is given.")] = "",
    publication: Annotated[str, typer.Option(help="penstock_NAME if none is given.")] = "",
    debezium: Annotated[Path | None, typer.Option(help="A connector's JSON to take all this from.")] = None,
    update: Annotated[bool, typer.Option("--update", help="Add tables to one that is there.")] = False,
) -> None:
    """Declare a capture; `penstock capture run NAME` starts it.

    Example: penstock capture add shop --tables public.orders,public.products
    """
    from penstock.capture import Capture, Outbox, Store
    from penstock.capture.database import open_database
    from penstock.capture.debezium import from_connector

    settings = Settings.load()
    if debezium is not None:
        capture = from_connector(name, _text(debezium), connection)
    else:
        capture = Capture(
            name,
            tables=_listed(tables),
            connection=connection,
            format=format,  # type: ignore[arg-type]
            snapshot=snapshot,  # type: ignore[arg-type]
            prefix=prefix,
            partitions=partitions,
            compaction_lag=compaction_lag,
            decimals=decimals,  # type: ignore[arg-type]
            outbox=Outbox(outbox) if outbox else None,
            messages=_listed(messages),
            transactions=transactions,
            slot=slot,
            publication=publication,
        )
    capture = _updated(Store(settings), capture, update=update)
    with open_database(settings, capture) as database:
        for each in database.check():
            console.print(f"[yellow]note[/yellow] {each}", highlight=False)
    Store(settings).put(capture)
    for path in capture.tables:
        console.print(f"{path} → topic {capture.topic(path)}", markup=False, highlight=False)
    console.print(f"start it: penstock capture run {name}", markup=False, highlight=False)


@app.command()
def run(
    name: str,
    snapshot_again: Annotated[
        bool, typer.Option("--snapshot-again", help="Make the slot anew and write all rows again.")
    ] = False,
    accept_timeline: Annotated[
        bool, typer.Option("--accept-timeline", help="Go on after another server has taken over.")
    ] = False,
    readers: Annotated[int, typer.Option(help="How many connections read the snapshot.")] = 2,
    chunk: Annotated[int, typer.Option(help="How many rows of a snapshot are written at once.")] = 20_000,
) -> None:
    """Run a capture until Ctrl-C: first the rows that are there, then every change.

    The work is done by a child process, which is started again if it is killed or breaks.

    Example: penstock capture run shop
    """
    settings = Settings.load()
    is_first = supervise(lambda line: console.print(line, markup=False, highlight=False))
    from penstock.capture import Runner, Wishes

    wishes = Wishes(
        accept_timeline=accept_timeline and is_first,  # wanted once, not whenever it is started again
        snapshot_again=snapshot_again and is_first,
        readers=readers,
        chunk=chunk,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: wishes.stopped.set())
    with CaptureScreen(console) as screen:
        Runner(settings, name, wishes, report=screen.report, log=screen.log).run()
    console.print("stopped", markup=False)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the captures, how they are and how far behind.

    Example: penstock capture list
    """
    from penstock.capture import Store
    from penstock.capture.status import status as status_of

    settings = Settings.load()
    rows = [status_of(settings, name) for name in Store(settings).names()]
    show(rows, _COLUMNS, as_json=as_json, empty="no captures yet: `penstock capture add` makes one")


@app.command()
def status(name: str, as_json: Json = False) -> None:
    """Show one capture: its slot, snapshot, lag in bytes and seconds, last event and error.

    Example: penstock capture status shop
    """
    from dataclasses import asdict

    from penstock.capture.status import status as status_of

    found = asdict(status_of(Settings.load(), name))
    if as_json:
        show([found], tuple(found), as_json=True, empty="")
        return
    show([{"": key, "value": value} for key, value in found.items()], ("", "value"), as_json=False, empty="")


@app.command()
def pause(name: str) -> None:
    """Let a capture rest; PostgreSQL keeps its log for it, MariaDB and MongoDB as long as for others.

    Example: penstock capture pause shop
    """
    from penstock.capture import Store

    Store(Settings.load()).pause(name, paused=True)
    console.print(
        f"{name} rests within a few seconds; see that the database keeps its log meanwhile", markup=False
    )


@app.command()
def resume(name: str) -> None:
    """Let a paused capture go on where it was.

    Example: penstock capture resume shop
    """
    from penstock.capture import Store

    Store(Settings.load()).pause(name, paused=False)
    console.print(f"{name} goes on within a few seconds, if it runs", markup=False)


@app.command()
def remove(
    name: str,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    keep_slot: Annotated[
        bool, typer.Option("--keep-slot", help="Leave slot and publication, as when the database is gone.")
    ] = False,
) -> None:
    """Remove a capture with its slot, publication and position; its topics stay.

    Example: penstock capture remove shop --yes
    """
    from penstock.capture import Store
    from penstock.capture.database import open_database

    settings = Settings.load()
    store = Store(settings)
    capture = store.get(name)
    if not yes:
        typer.confirm(f"Remove capture {name!r}, its slot, publication and position?", abort=True)
    if not keep_slot:
        store.pause(name, paused=True)
        with open_database(settings, capture) as database:
            if left := database.release(_PATIENCE):
                console.print(left, markup=False)
    store.remove(name)
    console.print(f"removed {name}; its topics stay", markup=False)


@app.command()
def snapshot(
    name: str,
    table: str,
    after: Annotated[str | None, typer.Option(help="Only rows behind this key: 17, or 4,17.")] = None,
    last: Annotated[str | None, typer.Option(help="Only rows up to this key.")] = None,
) -> None:
    """Write a table's rows, or a range of its keys, again while the stream goes on.

    Example: penstock capture snapshot shop public.orders --after 1000 --last 2000
    """
    from penstock.capture import Store
    from penstock.capture.database import open_database
    from penstock.capture.snapshot_request import SnapshotRequest

    settings = Settings.load()
    with open_database(settings, Store(settings).get(name)) as database:
        database.request(SnapshotRequest(table, _key(after), _key(last)))
    console.print(
        f"{table} is read again as soon as {name} runs; `penstock capture status {name}` shows how far",
        markup=False,
    )


@app.command()
def classes(name: str) -> None:
    """Print the event classes and tables of a capture, for flows to import.

    Example: penstock capture classes shop > shop_tables.py
    """
    from penstock.capture import Store
    from penstock.capture.database import open_database
    from penstock.capture.event_classes import classes as written

    settings = Settings.load()
    capture = Store(settings).get(name)
    with open_database(settings, capture) as database:
        shapes = [database.shape(path) for path in capture.tables]
    typer.echo(written(capture, shapes), nl=False)


@app.command()
def role(
    name: str,
    as_: Annotated[str, typer.Option("--as", help="The role's name.")] = "penstock",
    tables: Annotated[str, typer.Option(help="Of a capture that is not there yet.")] = "",
    connection: Annotated[str | None, typer.Option(help="Any that reaches the database.")] = None,
) -> None:
    """Print the SQL of a role that may capture, and no more.

    Example: penstock capture role shop --as shop_capture --tables public.orders
    """
    from penstock.capture import Capture, Store
    from penstock.capture.database import open_database

    settings = Settings.load()
    capture = Capture(name, tables=_listed(tables)) if tables else Store(settings).get(name)
    if connection is not None:
        capture = replace(capture, connection=connection)
    with open_database(settings, capture) as database:
        typer.echo(database.role(as_))


def _updated(store: "Store", capture: "Capture", *, update: bool) -> "Capture":
    """Return what is to be written down: of one that is there, only what was given changes."""
    if not store.has(capture.name):
        return capture
    known = store.get(capture.name)
    if not update:
        raise CaptureError(
            f"there is a capture {capture.name!r} already",
            hint="add --update to give it more tables, or `penstock capture remove` it first",
        )
    plain = type(capture)(capture.name, tables=capture.tables or known.tables)
    given = [name for name in _FIXED if getattr(capture, name) != getattr(plain, name)]
    other = [name for name in given if getattr(known, name) != getattr(capture, name)]
    if other:
        raise CaptureError(
            f"{other[0]} is {getattr(known, other[0])!r} in the capture that is there, and can't change",
            hint="add a capture of another name",
        )
    return replace(
        known,
        tables=tuple(dict.fromkeys([*known.tables, *capture.tables])),
        outbox=capture.outbox or known.outbox,
        messages=capture.messages or known.messages,
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _key(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(text.split(","))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise CaptureError(f"{path} can't be read: {error.strerror}") from error
