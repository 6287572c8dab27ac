"""Commands handled: load the state, decide, append; decide again where somebody else was faster."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from penstock.errors import ConfigurationError, ConflictError, RefusedError, RepeatedCommandError
from penstock.events import new_id
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.append import Append, Context
from penstock.sourcing.domain import Command, Refusal
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.repository import Loaded, Repository
from penstock.sourcing.store import EventStore

S = TypeVar("S")
T = TypeVar("T")
_RETRIES = 20


@dataclass(frozen=True)
class Receipt:
    """What a command led to: its events in the stream, at which version, and whether it was done before."""

    category: str
    stream: str
    version: int
    records: tuple[Recorded, ...]
    repeated: bool = False


class CommandHandler(Repository[S]):
    """Takes commands to the streams of one aggregate.

        accounts = CommandHandler(store, account)
        accounts.execute("ada", Deposit(100), id="deposit-1", actor="teller 3")

    A refusal is raised as RefusedError. Where another writer was faster, it decides again on the new state,
    up to `retries` times. A command that comes again with the same `id` is not done again: its receipt is
    that of the first time.
    """

    def __init__(self, store: EventStore, aggregate: Aggregate[S], *, retries: int = _RETRIES) -> None:
        super().__init__(store, aggregate)
        self._retries = retries

    def execute(
        self,
        stream: str,
        command: Command,
        *,
        id: str | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        causation: str | None = None,
    ) -> Receipt:
        """Handle a command, and return its receipt."""
        cause = causation or id or new_id()
        context = Context(actor, correlation or cause, cause)
        return done_once(
            self.store,
            id,
            lambda: retried(lambda: self._once(stream, command, id, context), self._retries),
            lambda records: self.repeated(stream, records),
        )

    def decide(self, loaded: Loaded[S], stream: str, command: Command) -> Append:
        """Return what a command adds to a stream, or raise why it is refused."""
        decided = self.aggregate.decided(loaded.state, command)
        if isinstance(decided, Refusal):
            raise RefusedError(type(command).__name__, decided)
        return self.appending(stream, loaded.version, decided)

    def _once(self, stream: str, command: Command, id: str | None, context: Context) -> Receipt:
        loaded = self.load(stream)
        append = self.decide(loaded, stream, command)
        after = self.after(loaded, append)
        records = tuple(self.store.append(append, command=id, context=context)) if append.events else ()
        self.keep_if_due(stream, after)
        return Receipt(self.aggregate.category, stream, loaded.version + len(records), records)

    def repeated(self, stream: str, records: Sequence[Recorded]) -> Receipt:
        """Return the receipt of a command that was done before."""
        category = self.aggregate.category
        own = tuple(each for each in records if (each.category, each.stream) == (category, stream))
        if not own:
            raise ConfigurationError(
                f"the command's id was used before, for {records[0].category} {records[0].stream!r}",
                hint="give each command an id of its own",
            )
        return Receipt(category, stream, own[-1].version, own, repeated=True)


def done_once(
    store: EventStore,
    id: str | None,
    attempt: Callable[[], T],
    repeated: Callable[[Sequence[Recorded]], T],
) -> T:
    """Return what an attempt returns, or what a command of this id led to before.

    It is looked for once more before a refusal leaves: another sender of the same command may have been
    faster, and it would be refused because it was done.
    """
    if id is None:
        return attempt()
    if done := store.of_command(id):
        return repeated(done)
    try:
        return attempt()
    except (RefusedError, RepeatedCommandError):
        if done := store.of_command(id):
            return repeated(done)
        raise


def retried(attempt: Callable[[], T], retries: int = _RETRIES) -> T:
    """Return what an attempt returns, made again as long as it meets conflicts."""
    for done in range(retries):
        try:
            return attempt()
        except ConflictError:
            time.sleep(random.uniform(0, min(0.001 * 2**done, 0.1)))  # noqa: S311
    return attempt()
