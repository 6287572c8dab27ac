"""penstock replica: a captured database's tables in another database."""

import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.audit_screen import show_audit
from penstock.cli.output import Json, console, show
from penstock.cli.replica_screen import ReplicaScreen
from penstock.cli.supervised import supervise
from penstock.errors import ReplicaError, TryAgainError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.replica import Replica

app = typer.Typer(help="Replicas: captured tables in another database.", no_args_is_help=True)
To = Annotated[
    str | None, typer.Option("--to", help="A connection of penstock.toml; the local database if none.")
]
_COLUMNS = ("replica", "capture", "schema", "state", "tables", "lag", "seconds")


@app.command()
def run(
    name: str,
    capture: Annotated[str, typer.Option(help="Whose tables; known after the first time.")] = "",
    to: To = None,
    schema: Annotated[str, typer.Option(help="For all tables; those of the source if none is given.")] = "",
    begin_anew: Annotated[
        bool, typer.Option("--begin-anew", help="Empty the copy first, and read all of the log again.")
    ] = False,
) -> None:
    """Keep a capture's tables in another database until Ctrl-C.

    The work is done by a child process, which is started again if it is killed or breaks.

    Example: penstock replica run copy --capture shop --to warehouse --schema shop
    """
    settings = Settings.load()
    is_first = supervise(lambda line: console.print(line, markup=False, highlight=False))
    from penstock.replica import ReplicaRunner

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    screen = ReplicaScreen(console)
    replica = _declared(settings, name, capture, to, schema, stopped)
    if replica is not None:
        runner = ReplicaRunner(
            settings,
            replica,
            stopped,
            begin_anew=begin_anew and is_first,
            log=screen.log,
            report=screen.report,
        )
        runner.run()
    console.print("stopped", markup=False)


def _declared(
    settings: Settings, name: str, capture: str, to: str | None, schema: str, stopped: threading.Event
) -> "Replica | None":
    """Return the replica as it was given, or as its database knows it; None if there is no time for it."""
    from penstock.replica import Replica
    from penstock.replica.status import declared

    if capture:
        return Replica(name, capture, to, schema)
    while not stopped.is_set():
        with suppress(TryAgainError):
            found = declared(settings, name, to)
            if schema and schema != found.schema:
                raise ReplicaError(
                    f"replica {name!r} is in schema {found.schema!r}", hint="leave --schema out"
                )
            return found
        stopped.wait(1.0)
    return None


@app.command("list")
def list_(to: To = None, as_json: Json = False) -> None:
    """List the replicas in a database, how they are and how far behind.

    Example: penstock replica list --to warehouse
    """
    from penstock.replica.status import statuses

    show(statuses(Settings.load(), to), _COLUMNS, as_json=as_json, empty="no replicas in this database")


@app.command()
def status(name: str, to: To = None, as_json: Json = False) -> None:
    """Show one replica: its process, lag in records and seconds, last event and error.

    Example: penstock replica status copy --to warehouse
    """
    from dataclasses import asdict

    from penstock.replica.status import status as status_of

    found = asdict(status_of(Settings.load(), name, to))
    if as_json:
        show([found], tuple(found), as_json=True, empty="")
        return
    show([{"": key, "value": value} for key, value in found.items()], ("", "value"), as_json=False, empty="")


@app.command()
def remove(
    name: str,
    to: To = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    drop_tables: Annotated[bool, typer.Option("--drop-tables", help="Drop its tables, too.")] = False,
) -> None:
    """Forget a replica and its positions; its tables stay, unless they are to be dropped.

    Example: penstock replica remove copy --to warehouse --yes
    """
    from penstock.replica.removal import removed

    if not yes:
        what = "its positions and its tables" if drop_tables else "its positions"
        typer.confirm(f"Remove replica {name!r} and {what}?", abort=True)
    tables = removed(Settings.load(), name, to, drop_tables=drop_tables)
    what = "dropped" if drop_tables else "left"
    console.print(f"removed {name}; {what} {', '.join(tables) or 'no tables'}", markup=False, highlight=False)


@app.command()
def audit(
    name: str,
    to: To = None,
    tables: Annotated[str, typer.Option(help="Only these: public.orders,public.lines")] = "",
    rows: Annotated[int, typer.Option(help="How many rows one checksum is of.")] = 10_000,
    patience: Annotated[str, typer.Option(help="How long the copy is waited for.")] = "1 minute",
    repair: Annotated[
        bool, typer.Option("--repair", help="Capture again what differs, and look again.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare a replica with its source by checksums while both go on; end with 65 if rows differ.

    Example: penstock replica audit copy --to warehouse --repair
    """
    from penstock.durations import duration
    from penstock.replica import auditing, repaired
    from penstock.replica.status import declared

    settings = Settings.load()
    replica = declared(settings, name, to)
    wanted, seconds = tuple(filter(None, tables.split(","))), duration(patience).total_seconds()
    with auditing(settings, replica, tables=wanted, size=rows, patience=seconds) as opened:
        found = opened.run()
        again = repaired(opened, found) if repair and not found.is_equal else None
    show_audit(found, as_json=as_json, repaired=again)
    if not (again or found).is_equal:
        raise typer.Exit(65)
