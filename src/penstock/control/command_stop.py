"""Ends a background command early."""

from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.control.command import CommandRun
from penstock.control.commands import Commands
from penstock.errors import FlowError
from penstock.settings import Settings


@dataclass(frozen=True)
class CommandStop:
    """The process of a command is asked to end; what replaces a flow is not, since it would be half done."""

    id: str

    name = "command.stop"

    @property
    def subject(self) -> str:
        return self.id

    def preview(self, settings: Settings) -> Outcome:
        return Outcome(f"would be asked to end: `{self._running(settings).command.line}`")

    def act(self, settings: Settings) -> Outcome:
        found = self._running(settings)
        Commands(settings).stop(self.id)
        return Outcome(f"stopped: `{found.command.line}`")

    def _running(self, settings: Settings) -> CommandRun:
        found = Commands(settings).run(self.id)
        if not found.is_running:
            raise FlowError("it has ended already")
        if not found.command.may_be_stopped:
            raise FlowError(
                f"`{found.command.line}` can't be stopped on the way",
                hint="let it end: afterwards, a rollback or another swap takes it back",
            )
        return found
