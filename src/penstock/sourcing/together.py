"""Commands to several streams that are done together, or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigurationError, RepeatedCommandError
from penstock.events import new_id
from penstock.sourcing.append import Context
from penstock.sourcing.domain import Command
from penstock.sourcing.handler import CommandHandler, Receipt, retried


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
    if len({each.handler.store.name for each in commands}) != 1:
        raise ConfigurationError(
            "commands that are done together are for one store, and there is at least one"
        )
    store = commands[0].handler.store
    if id is not None and (done := store.of_command(id)):
        return tuple(each.handler.repeated(each.stream, done) for each in commands)
    cause = causation or id or new_id()
    context = Context(actor, correlation or cause, cause)
    try:
        return retried(lambda: _once(commands, id, context))
    except RepeatedCommandError as repeated:
        records: Any = repeated.records
        return tuple(each.handler.repeated(each.stream, records) for each in commands)


def _once(commands: Sequence[Directed], id: str | None, context: Context) -> tuple[Receipt, ...]:
    loaded = [each.handler.load(each.stream) for each in commands]
    appends = [
        each.handler.decide(found, each.stream, each.command)
        for each, found in zip(commands, loaded, strict=True)
    ]
    store = commands[0].handler.store
    records = store.append(*(each for each in appends if each.events), command=id, context=context)
    for each, found, append in zip(commands, loaded, appends, strict=True):
        each.handler.keep_if_due(each.stream, found, append)
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
