"""Actions that take a while: each is a command of the command line, run in a process of its own."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.control.command import Command
from penstock.control.commands import Commands
from penstock.settings import Settings


@dataclass(frozen=True, kw_only=True)
class BackgroundAction(ABC):
    """An action that begins a command for a user: what that does is what it does at a terminal."""

    user: str = ""

    @property
    @abstractmethod
    def command(self) -> Command: ...

    @abstractmethod
    def check(self, settings: Settings) -> Outcome:
        """Return what it would do, or refuse; of the same system it says the same."""

    @property
    def name(self) -> str:
        return self.command.name

    @property
    def subject(self) -> str:
        return self.command.subject

    def preview(self, settings: Settings) -> Outcome:
        Commands(settings).refuse_beside(self.command)
        return self.check(settings)

    def act(self, settings: Settings) -> Outcome:
        self.check(settings)
        id = Commands(settings).start(self.command, self.user)
        return Outcome(f"`{self.command.line}` was started", command=id)
