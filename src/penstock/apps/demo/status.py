"""The stages that a run of an application goes through, for a screen to show."""

import time
from collections.abc import Callable, Mapping

from penstock.apps.demo.report import Figures


class RunStatus:
    """Is changed by the run, and looked at by a screen in a thread of its own.

    `stages` are their titles by name, in order; a run is complete when it is over in the last one.
    """

    def __init__(self, stages: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self.stages = stages
        self.entered: dict[str, float] = {}  # the stages so far
        self.note = ""
        self.interrupted = False
        self.ended: float | None = None
        self.figures: Callable[[], Figures] = tuple  # shown while it runs
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
        return self.ended is not None and self.stage == [*self.stages][-1]

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
