"""penstock store: event stores, their streams, and their way to the log."""

import signal
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.capture_screen import CaptureScreen
from penstock.cli.output import Json, console, show
from penstock.cli.supervised import supervise
from penstock.errors import ConfigurationError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.sourcing import EventStore

app = typer.Typer(help="Event stores: streams of events in PostgreSQL.", no_args_is_help=True)
Connection = Annotated[
    str | None, typer.Option("--connection", help="Of penstock.toml; the local database if none.")
]
Keys = Annotated[
    str | None, typer.Option("--keys", help="The connection to the keys of personal data, if another.")
]
_COLUMNS = ("version", "at", "type", "data", "actor", "causation")


@app.command()
def create(name: str, connection: Connection = None, keys: Keys = None) -> None:
    """Make a store's tables unless they are there.

    Example: penstock store create bank
    """
    with _store(name, connection, keys) as store:
        store.create()
    console.print(f"the store {name} is ready: a schema of that name in the database", markup=False)


@app.command()
def publish(
    name: str,
    connection: Connection = None,
    keys: Keys = None,
    partitions: Annotated[int, typer.Option(help="Of topics that it makes, one for each category.")] = 1,
) -> None:
    """Write a store's events to Kafka until Ctrl-C, each once and in its stream's order.

    It is a capture, NAME_events: `penstock capture status` shows how far it is. The work is done by a child
    process, which is started again if it is killed or breaks.

    Example: penstock store publish bank --partitions 4
    """
    settings = Settings.load()
    supervise(lambda line: console.print(line, markup=False, highlight=False))
    from penstock.capture import Runner, Wishes
    from penstock.sourcing import publish as declare

    with _store(name, connection, keys) as store:
        capture = declare(store, partitions=partitions)
    wishes = Wishes()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: wishes.stopped.set())
    with CaptureScreen(console) as screen:
        Runner(settings, capture.name, wishes, report=screen.report, log=screen.log).run()
    console.print("stopped", markup=False)


@app.command()
def read(
    name: str,
    category: str,
    stream: str,
    connection: Connection = None,
    keys: Keys = None,
    after: Annotated[int, typer.Option(help="Only what is behind this version.")] = 0,
    to: Annotated[int | None, typer.Option(help="Up to this version.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this time: 2026-11-17T12:00:00Z")] = None,
    backwards: Annotated[bool, typer.Option("--backwards", help="The newest first.")] = False,
    as_json: Json = False,
) -> None:
    """Show a stream's events, by version or time.

    Example: penstock store read bank account ada --backwards
    """
    moment = None if until is None else _moment(until)
    with _store(name, connection, keys) as store:
        records = store.read(category, stream, after=after, to=to, until=moment, backwards=backwards)
        show(records, _COLUMNS, as_json=as_json, empty=f"{category} {stream} has no such events")


@app.command()
def tail(
    name: str,
    connection: Connection = None,
    keys: Keys = None,
    category: Annotated[str | None, typer.Option(help="Only one; all if none is given.")] = None,
    after: Annotated[str, typer.Option(help="A position that it printed before.")] = "",
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more, until Ctrl-C.")] = False,
) -> None:
    """Print a store's events in its order, a line each: position, stream, version, type and data.

    Example: penstock store tail bank --follow
    """
    from penstock.sourcing import Position
    from penstock.sourcing import tail as follow_store

    start = Position.parse(after) if after else None
    with _store(name, connection, keys) as store:
        for position, each in follow_store(store, after=start, category=category, follow=follow):
            stream = each.stream if each.stream.isprintable() else repr(each.stream)
            typer.echo(f"{position} {each.category} {stream} {each.version} {each.type} {each.data}")


@app.command()
def erase(name: str, subject: str, connection: Connection = None, keys: Keys = None) -> None:
    """Delete the key of a subject: what is personal of it can't be read any more, anywhere.

    Example: penstock store erase bank ada
    """
    with _store(name, connection, keys) as store:
        had_key = store.erase(subject)
    if had_key:
        line = f"{subject} is erased; other processes forget its key within a minute"
    else:
        line = f"there was nothing personal of {subject}, or it was erased before: check the name"
    console.print(line, markup=False)
    if not had_key:
        raise typer.Exit(66)


@app.command()
def renumber(name: str, connection: Connection = None) -> None:
    """Number a store's events anew after its database was restored from a dump; nobody may write meanwhile.

    Example: penstock store renumber bank
    """
    from penstock.sourcing import renumber as number_anew

    with _store(name, connection) as store:
        number_anew(store)
    console.print(f"the events of {name} are numbered anew, and readers begin anew", markup=False)


def _store(name: str, connection: str | None, keys: str | None = None) -> "EventStore":
    from penstock.sourcing import EventStore

    return EventStore(name, Settings.load(), connection=connection, keys=keys, size=2)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ConfigurationError(
            f"{text!r} is not a time with its zone", hint="write it as 2026-11-17T12:00:00Z"
        )
    return found
