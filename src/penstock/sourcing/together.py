"""Commands to several streams that are done together, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigurationError
from penstock.events import new_id
from penstock.sourcing.append import Context
from penstock.sourcing.domain import Command
from penstock.sourcing.handler import CommandHandler, Receipt, done_once, retried
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.store import EventStore


@dataclass(frozen=True)
class Directed:
    """A command, and the stream it is for."""

    handler: CommandHandler[Any]
    stream: str
    command: Command


def execute_together(
    commands: Sequence[Directed],
    *,
    id: str | None = None,
    actor: str | None = None,
    correlation: str | None = None,
    causation: str | None = None,
) -> tuple[Receipt, ...]:
    """Handle commands to different streams of one store in one transaction; one refusal refuses all."""
    cause = causation or id or new_id()
    context = Context(actor, correlation or cause, cause)
    return done_once(
        _store(commands),
        id,
        lambda: retried(lambda: once(commands, id, context)),
        lambda records: _repeated(commands, records),
    )


def _store(commands: Sequence[Directed]) -> EventStore:
    streams = {(each.handler.aggregate.category, each.stream) for each in commands}
    if len(streams) < len(commands):
        raise ConfigurationError(
            "two commands for one stream are done together, and neither would see what the other did",
            hint="make one command of them, or do one after the other",
        )
    stores = {(store.name, store.address) for store in (each.handler.store for each in commands)}
    if len(stores) != 1:
        raise ConfigurationError(
            "commands that are done together are for one store, and there is at least one"
        )
    return commands[0].handler.store


def _repeated(commands: Sequence[Directed], records: Sequence[Recorded]) -> tuple[Receipt, ...]:
    """Return receipts of what was done before; a command that led to nothing then has none of its events."""
    streams = {(each.category, each.stream) for each in records}
    found = []
    for each in commands:
        category = each.handler.aggregate.category
        if (category, each.stream) in streams or not _is_of(commands, streams):
            found.append(each.handler.repeated(each.stream, records))
        else:
            version = each.handler.store.version(category, each.stream)
            found.append(Receipt(category, each.stream, version, (), repeated=True))
    return tuple(found)


def _is_of(commands: Sequence[Directed], streams: set[tuple[str, str]]) -> bool:
    return streams <= {(each.handler.aggregate.category, each.stream) for each in commands}


def once(commands: Sequence[Directed], id: str | None, context: Context) -> tuple[Receipt, ...]:
    """Handle commands together in one attempt, which may meet a conflict, or find that it was done before."""
    store = _store(commands)
    loaded = [each.handler.load(each.stream) for each in commands]
    appends = [
        each.handler.decide(found, each.stream, each.command)
        for each, found in zip(commands, loaded, strict=True)
    ]
    after = [
        each.handler.after(found, append)
        for each, found, append in zip(commands, loaded, appends, strict=True)
    ]
    records = store.append(*(each for each in appends if each.events), command=id, context=context)
    for each, state in zip(commands, after, strict=True):
        each.handler.keep_if_due(each.stream, state)
    return tuple(
        Receipt(
            append.category,
            append.stream,
            append.expected + len(append.events),
            tuple(
                each for each in records if (each.category, each.stream) == (append.category, append.stream)
            ),
        )
        for append in appends
    )
