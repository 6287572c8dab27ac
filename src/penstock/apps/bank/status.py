"""What a run of the bank is doing at this moment, for a screen to show."""

import time
from collections.abc import Callable

STAGES = {
    "services": "start Kafka and PostgreSQL",
    "open": "open accounts",
    "readers": "start publisher, process, flows",
    "work": "commands at the counters",
    "kill": "kill -9 of all three, and recover",
    "settle": "let transfers end and views follow",
    "check": "check against the log",
    "stop": "stop everything",
}
Figures = list[tuple[str, str, str]]


class Status:
    """Is changed by the run, and looked at by a screen in a thread of its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.entered: dict[str, float] = {}
        self.note = ""
        self.figures: Callable[[], Figures] = list
        self.interrupted = False
        self.ended: float | None = None
        self._clock, self._began = clock, clock()

    @property
    def stage(self) -> str:
        """The stage that it is in."""
        return next(reversed(self.entered), "")

    @property
    def seconds(self) -> float:
        """How long it has run, or ran."""
        return (self._clock() if self.ended is None else self.ended) - self._began

    @property
    def complete(self) -> bool:
        """Whether it is over, and went through all stages."""
        return self.ended is not None and self.stage == [*STAGES][-1]

    def enter(self, stage: str, note: str = "") -> None:
        """Begin the next stage."""
        self.note = note
        self.entered[stage] = self._clock()

    def end(self) -> None:
        """Stop the clock."""
        self.ended = self._clock()

    def interrupt(self) -> None:
        """Note that somebody has stopped it."""
        self.interrupted = True
        self.note = "interrupted: stopping what was started"

    def seconds_in(self, stage: str) -> float:
        """How long it was, or has been, in a stage."""
        names = [*self.entered]
        later = names[names.index(stage) + 1 :]
        until = self.entered[later[0]] if later else self._began + self.seconds
        return until - self.entered[stage]
