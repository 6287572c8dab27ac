"""penstock inlet: direct messages (UDP, TCP lines, ZeroMQ) as events of a topic."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.modules import declared_topic
from penstock.cli.output import Json, console
from penstock.cli.supervised import supervise
from penstock.errors import SettingsError, TryAgainError
from penstock.settings import Secret, Settings

if TYPE_CHECKING:
    from penstock.inlets import Counts, Messages
    from penstock.inlets.receiver import Source
    from penstock.inlets.zeromq import Pattern
    from penstock.registry import Registry

app = typer.Typer(help="Direct messages as events: UDP, TCP lines and ZeroMQ.", no_args_is_help=True)
Module = Annotated[list[str] | None, typer.Option("--module", "-m", help="Where the topic is declared.")]
Port = Annotated[int, typer.Option(help="Where to listen.")]
Host = Annotated[str, typer.Option(help="Any but loopback needs --anyone.")]
Anyone = Annotated[
    bool, typer.Option("--anyone", help="Let anybody write who reaches the address: nobody is asked who.")
]
Line = Annotated[str | None, typer.Option(help='Plain text in place of JSON: "{sensor} {celsius}"')]
ReceivedAt = Annotated[
    str | None, typer.Option(help="The field that gets the time of receipt, where a message has none.")
]
Longest = Annotated[int, typer.Option(help="Of a message, in bytes.")]
Bind = Annotated[str | None, typer.Option(help="Where to listen: tcp://127.0.0.1:5557 or ipc://…")]
Connect = Annotated[str | None, typer.Option(help="Whom to connect to, instead.")]
TOKEN = "PENSTOCK_INLET_TOKEN"  # noqa: S105 - the name of a variable
_EVERY = 10.0  # seconds between two lines of the report


@app.command()
def udp(
    topic: str,
    port: Port,
    host: Host = "127.0.0.1",
    anyone: Anyone = False,
    line: Line = None,
    received_at: ReceivedAt = None,
    module: Module = None,
) -> None:
    """Receive datagrams, a message each; what there is no room for is dropped and counted.

    Example: penstock inlet udp readings --port 9125 --line "{sensor} {celsius}" --received-at at -m house.py
    """
    from penstock.inlets import Udp

    _run(topic, Udp(port, host, anyone), line, received_at, module)


@app.command()
def tcp(
    topic: str,
    port: Port,
    host: Host = "127.0.0.1",
    anyone: Anyone = False,
    line: Line = None,
    received_at: ReceivedAt = None,
    acknowledge: Annotated[
        bool, typer.Option("--acknowledge", help="Reply how many lines are in the log.")
    ] = False,
    longest: Longest = 65_536,
    connections: Annotated[int, typer.Option(help="How many at once.")] = 100,
    module: Module = None,
) -> None:
    """Receive lines, a message each; senders that are faster than the log wait.

    If PENSTOCK_INLET_TOKEN is set, it has to be the first line of every connection; it is sent in the clear.

    Example: penstock inlet tcp readings --port 9126 --received-at at -m house.py
    """
    from penstock.inlets import Tcp

    token = Secret(os.environ[TOKEN]) if TOKEN in os.environ else None
    source = Tcp(port, host, anyone, token, acknowledge, longest, connections)
    _run(topic, source, line, received_at, module)


@app.command()
def pull(
    topic: str,
    bind: Bind = None,
    connect: Connect = None,
    anyone: Anyone = False,
    line: Line = None,
    received_at: ReceivedAt = None,
    longest: Longest = 65_536,
    module: Module = None,
) -> None:
    """Receive what ZeroMQ's PUSH sockets send; senders that are faster than the log wait.

    Example: penstock inlet pull readings --bind tcp://127.0.0.1:5557 -m house.py
    """
    _run_zeromq("pull", topic, bind, connect, "", anyone, longest, line, received_at, module)


@app.command()
def sub(
    topic: str,
    connect: Connect = None,
    bind: Bind = None,
    prefix: Annotated[str, typer.Option(help="Only messages that begin so.")] = "",
    anyone: Anyone = False,
    line: Line = None,
    received_at: ReceivedAt = None,
    longest: Longest = 65_536,
    module: Module = None,
) -> None:
    """Receive what ZeroMQ's PUB sockets publish; what there is no room for is dropped and counted.

    Example: penstock inlet sub readings --connect tcp://127.0.0.1:5556 --prefix weather -m house.py
    """
    _run_zeromq("sub", topic, bind, connect, prefix, anyone, longest, line, received_at, module)


@app.command("redrive")
def redrive_(
    topic: str,
    line: Line = None,
    received_at: ReceivedAt = None,
    module: Module = None,
    as_json: Json = False,
) -> None:
    """Read the topic's dead letters again as messages; those that are still malformed stay dead letters.

    Example: penstock inlet redrive readings --line "{sensor} {celsius}" --received-at at -m house.py
    """
    from penstock.inlets import redrive

    settings = Settings.load()
    with _messages(settings, topic, line, received_at, module) as (messages, schemas):
        done = redrive(messages, settings, schemas=schemas)
    if as_json:
        typer.echo(json.dumps(vars(done)))
    else:
        _print(f"{done.sent} sent again, {done.still_dead} still dead")


def _run_zeromq(
    pattern: "Pattern",
    topic: str,
    bind: str | None,
    connect: str | None,
    prefix: str,
    anyone: bool,
    longest: int,
    line: str | None,
    received_at: str | None,
    module: list[str] | None,
) -> None:
    from penstock.inlets import ZeroMq

    source = ZeroMq(pattern, bind, connect, prefix, anyone, longest)
    _run(topic, source, line, received_at, module)


def _run(
    name: str, source: "Source", line: str | None, received_at: str | None, module: list[str] | None
) -> None:
    """Run an inlet until Ctrl-C or SIGTERM; a child does the work, and is started again if it is killed."""
    settings = Settings.load()
    supervise(_print, again=(TryAgainError.exit_code,))  # as long as it listens, senders count on it
    from penstock.inlets import Inlet

    with (
        _messages(settings, name, line, received_at, module) as (messages, schemas),
        Inlet(source, messages, settings, schemas=schemas, report=_Report().now_and_then) as inlet,
    ):
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: inlet.stop())
        _warn(source)
        _print(f"{inlet.address} → topic {name}; Ctrl-C ends it")
        _print(f"ended: {inlet.run()}")


@contextmanager
def _messages(
    settings: Settings, name: str, line: str | None, received_at: str | None, module: list[str] | None
) -> "Iterator[tuple[Messages[Any], Registry | None]]":
    """What the topic's messages are like, and the registry if its events name their schema."""
    from penstock.inlets import Messages
    from penstock.registry import Registry

    modules = tuple(module) if module else settings.modules
    topic = declared_topic(name, modules)
    if topic is None:
        raise SettingsError(
            f"no module declares the topic {name!r}",
            hint=f"looked into {', '.join(modules) or 'none'}; name the module with -m",
        )
    messages = Messages(topic, line, received_at)
    with Registry(settings) if topic.is_registered else nullcontext() as schemas:
        yield messages, schemas


def _warn(source: "Source") -> None:
    if getattr(source, "anyone", False):
        console.print(
            "[yellow]warning[/yellow] whoever reaches this address can write to the topic: "
            "nobody is asked who they are, and nothing is encrypted"
        )
    elif getattr(source, "token", None) is not None:
        console.print("[yellow]note[/yellow] the token and the lines are sent in the clear")


def _print(line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Report:
    """Prints counts now and then, where they have changed."""

    def __init__(self) -> None:
        self._last, self._printed_at = "", time.monotonic()

    def now_and_then(self, counts: "Counts") -> None:
        if str(counts) != self._last and time.monotonic() - self._printed_at > _EVERY:
            self._last, self._printed_at = str(counts), time.monotonic()
            _print(self._last)
