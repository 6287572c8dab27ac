"""An action: what is to be done with what, shown first, then carried out and written down."""

from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from penstock.control.audit import recorded, write_down
from penstock.documents import JsonObject
from penstock.settings import Settings


@dataclass(frozen=True)
class Outcome:
    """What an action would do, or has done: a sentence, and a table where there is more to say.

    `command` is the background command that was begun by it.
    """

    summary: str
    rows: tuple[JsonObject, ...] = field(default=())
    command: str = ""


class Action(Protocol):
    """A change of a system; `name` is stable across releases."""

    @property
    def name(self) -> str: ...

    @property
    def subject(self) -> str: ...

    def preview(self, settings: Settings) -> Outcome:
        """Return what would be done; nothing is changed."""
        ...

    def act(self, settings: Settings) -> Outcome:
        """Do it."""
        ...


def carry_out(action: Action, settings: Settings, user: str | None = None) -> Outcome:
    """Carry an action out, and write down that it begins and what came of it; a failure is raised."""
    write = partial(write_down, settings.data, action.name, action.subject, user=user)
    return recorded(write, lambda: action.act(settings), lambda done: f"done: {done.summary}")
