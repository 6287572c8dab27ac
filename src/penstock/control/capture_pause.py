"""Pauses a capture, or lets it go on."""

from dataclasses import dataclass

from penstock.capture import Store
from penstock.control.action import Outcome
from penstock.settings import Settings


@dataclass(frozen=True)
class CapturePause:
    """A capture that is paused ends its process; the database keeps its log for it meanwhile."""

    capture: str
    paused: bool

    @property
    def name(self) -> str:
        return "capture.pause" if self.paused else "capture.resume"

    @property
    def subject(self) -> str:
        return self.capture

    def preview(self, settings: Settings) -> Outcome:
        Store(settings).get(self.capture)
        if self.paused:
            return Outcome(f"{self.capture} would pause; its database keeps the log until it goes on")
        return Outcome(f"{self.capture} would go on where it was")

    def act(self, settings: Settings) -> Outcome:
        store = Store(settings)
        store.get(self.capture)
        store.pause(self.capture, paused=self.paused)
        return Outcome(f"{self.capture} {'pauses' if self.paused else 'goes on'}")
