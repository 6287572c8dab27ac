"""penstock topics: what is declared, what is there, and what is in it."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.progress import Progress

from penstock.cli.modules import declared_topic, declared_topics
from penstock.cli.output import Json, console, show
from penstock.cli.output import plain as plain_json
from penstock.documents import JsonObject
from penstock.errors import UnknownSchemaError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.log import Broker, Change, Topic
    from penstock.registry import Registry
    from penstock.schemas import Codec, WrittenSchema

app = typer.Typer(help="Declare, apply and look into topics.", no_args_is_help=True)
Modules = Annotated[
    list[str] | None, typer.Argument(help="Modules or files that declare topics; penstock.toml's by default.")
]
Module = Annotated[list[str] | None, typer.Option("--module", "-m", help="Where the topic is declared.")]


def _modules(settings: Settings, given: list[str] | None) -> tuple[str, ...]:
    return tuple(given) if given else settings.modules


def _broker(settings: Settings) -> "Broker":
    from penstock.log import Broker

    return Broker(settings)


@contextmanager
def _codec(topic: "Topic[Any] | None", settings: Settings) -> "Iterator[Codec[Any] | None]":
    """The codec of a topic if it is declared and has one, with the registry if messages name their schema."""
    if topic is None or topic.is_captured:
        yield None
    elif not topic.is_registered:
        yield topic.codec()
    else:
        from penstock.registry import Registry

        with Registry(settings) as registry:
            yield topic.codec(registry)


class _RegisteredSchemas:
    """The registry's schemas by number; it is opened when one is asked for, which most topics never do."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._settings, self._subject = settings, f"{topic}-value"
        self._open = ExitStack()
        self._registry: Registry | None = None
        self._tried = False

    def __enter__(self) -> "_RegisteredSchemas":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def find(self, id: int) -> "WrittenSchema":
        """Return the schema of a number; one that is not there now is not waited for long."""
        from penstock.registry import Registry
        from penstock.registry.topic import NAME

        if not self._tried:
            self._tried = True
            if _broker(self._settings).exists(NAME):  # a registry would make it
                self._registry = self._open.enter_context(Registry(self._settings, patience="1 second"))
        if self._registry is None:
            raise UnknownSchemaError("there is no registry")
        return self._registry.written(self._subject, id)


@app.command("plan")
def plan_(modules: Modules = None, as_json: Json = False) -> None:
    """Show what `apply` would change; nothing is changed.

    Example: penstock topics plan shop.py
    """
    from penstock.log import plan

    settings = Settings.load()
    changes = plan(declared_topics(_modules(settings, modules)), _broker(settings))
    _show_changes(changes, as_json)
    if any(change.action == "refuse" for change in changes):
        raise typer.Exit(78)


@app.command("apply")
def apply_(modules: Modules = None, as_json: Json = False) -> None:
    """Create and change topics so that they are as declared.

    Example: penstock topics apply shop.py
    """
    from penstock.log import apply

    settings = Settings.load()
    _show_changes(apply(declared_topics(_modules(settings, modules)), _broker(settings)), as_json)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the topics on the broker.

    Example: penstock topics list --json
    """
    states = _broker(Settings.load()).topics().values()
    show(
        states,
        ("name", "partitions", "replication", "config"),
        as_json=as_json,
        empty="no topics yet: `penstock topics apply`",
    )


@app.command()
def describe(name: str, as_json: Json = False) -> None:
    """Show a topic's partitions, with the first and last offset of each, and its settings.

    Example: penstock topics describe orders
    """
    broker = _broker(Settings.load())
    state = broker.topic(name)
    offsets = broker.offsets(name)
    if as_json:
        typer.echo(json.dumps({**vars(state), "config": dict(state.config), "offsets": offsets}, indent=2))
        return
    settings = ", ".join(f"{key}={value}" for key, value in state.config.items()) or "all defaults"
    console.print(
        f"[bold]{escape(name)}[/bold]: {state.partitions} partitions, replication {state.replication}; "
        f"{escape(settings)}"
    )
    rows = [
        {"partition": number, "first": low, "next": high, "kept": high - low}
        for number, (low, high) in offsets.items()
    ]
    show(rows, ("partition", "first", "next", "kept"), as_json=False, empty="no partitions")


@app.command()
def delete(name: str, yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False) -> None:
    """Delete a topic and every event in it.

    Example: penstock topics delete orders --yes
    """
    broker = _broker(Settings.load())
    broker.topic(name)
    if not yes:
        typer.confirm(f"Delete topic {name!r} and all its events?", abort=True)
    broker.delete(name)
    console.print(f"deleted {name}", markup=False)


@app.command()
def tail(
    name: str,
    module: Module = None,
    since: Annotated[
        datetime | None, typer.Option(help="Start at this time (UTC) instead of the end.")
    ] = None,
    beginning: Annotated[bool, typer.Option("--from-beginning", help="Start at the oldest event.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", "-n", help="Stop after this many events.")] = None,
) -> None:
    """Follow a topic live, decoded, a JSON line for each event; Ctrl-C ends it.

    Example: penstock topics tail orders --from-beginning -n 10
    """
    from penstock.log.tail import tail as follow
    from penstock.schemas.plain import PlainReader

    settings = Settings.load()
    topic = declared_topic(name, _modules(settings, module))
    start = {"since": since, "beginning": beginning, "limit": limit}

    def waiting(seen: int) -> None:
        what = "no events yet" if beginning and not seen else "no more events yet"
        typer.echo(f"{name} has {what}; waiting, Ctrl-C ends it", err=True)

    with _codec(topic, settings) as codec, _RegisteredSchemas(settings, name) as schemas:
        plain = PlainReader(schemas.find)
        lines = follow(name, settings, codec=codec, plain=plain, waiting=waiting, **start)  # type: ignore[arg-type]
        for line in lines:
            text = json.dumps(line, ensure_ascii=False, default=plain_json)
            typer.echo(text.encode("utf-8", "backslashreplace").decode())


@app.command("redrive")
def redrive_(name: str, module: Module = None, as_json: Json = False) -> None:
    """Redrive a topic's dead letters; those that still can't be decoded stay dead letters.

    Example: penstock topics redrive orders -m shop.py
    """
    from penstock.log import redrive

    settings = Settings.load()
    topic = declared_topic(name, _modules(settings, module))
    with (
        _codec(topic, settings) as codec,
        Progress(console=console, transient=True, disable=as_json) as progress,
    ):
        bar = progress.add_task(f"redriving {escape(name)}", total=None)
        done = redrive(
            name,
            settings,
            readable=codec.decode if codec else None,
            progress=lambda now, total: progress.update(bar, completed=now, total=total),
        )
    if as_json:
        typer.echo(json.dumps(vars(done)))
    else:
        repeated = f", {done.repeated} duplicates" if done.repeated else ""
        console.print(f"{done.sent} sent again, {done.still_dead} still dead{repeated}")


def _show_changes(changes: "list[Change]", as_json: bool) -> None:
    if as_json:
        typer.echo(
            json.dumps([{**vars(change), "settings": dict(change.settings)} for change in changes], indent=2)
        )
        return
    rows: list[JsonObject] = [
        {
            "topic": change.topic,
            "action": change.action,
            "partitions": _arrow(*change.partitions),
            "settings": {name: _arrow(before, after) for name, (before, after) in change.settings.items()},
            "note": change.reason,
        }
        for change in changes
    ]
    show(
        rows, ("topic", "action", "partitions", "settings", "note"), as_json=False, empty="no topics declared"
    )


def _arrow(before: object, after: object) -> str:
    return str(after) if before == after or not before else f"{before} → {after}"
