"""What an application does in its demo: its traffic, and how its results are checked."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from penstock.apps.demo.report import Figures, Report
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.apps.demo.demo import Plan

__all__ = ["Figures", "Process", "Work"]


class Process(Protocol):
    """A process beside the flows, which may be killed and started again."""

    @property
    def alive(self) -> bool: ...

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def last_words(self) -> str: ...


class Work(ABC):
    """Makes topics and tables when it is entered, sends traffic of which it knows the truth, and checks.

    `settings` are those of the flows, and may get a connection when it is entered. `processes` run beside the
    flows, and are killed with them; `unhurt` run beside them, too, and are not. `flows` are those that run;
    all if there are none. `awaited` are those that have to read everything in the end; all that run if there
    are none: flows in real time say how far they are at checkpoints only. What is put into `opened` is closed
    at the end. `plan` is what the demo is asked to do. `began` has when each stage began, in seconds since
    1970.
    """

    processes: Sequence[Process] = ()
    unhurt: Sequence[Process] = ()
    flows: Sequence[str] = ()
    awaited: Sequence[str] = ()
    plan: "Plan"

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.opened = ExitStack()
        self.began: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.opened.close()

    def begin(self, stage: str) -> None:  # noqa: B027
        """Do what belongs to a stage that begins: "start", "steady", "kill", "settle" or "check"."""

    def has_begun(self) -> bool:
        """Whether results come; asked while the flows start, when one of them has committed a batch."""
        return True

    def is_steady(self, moment: float) -> bool:
        """Whether a moment is in the steady time: after all was warm, and before the kill."""
        return self.began.get("steady", inf) <= moment < self.began.get("kill", inf)

    @abstractmethod
    def send(self, count: int) -> None:
        """Send the next so many events."""

    def keeps_up(self) -> bool:
        """Whether results come without delay; asked before the steady time, for some seconds at most."""
        return True

    @abstractmethod
    def finish(self) -> None:
        """Send what comes last, and wait until all of it is in the log."""

    def is_settled(self) -> bool:
        """Whether the results that are to come have come; asked when the flows have read everything."""
        return True

    @abstractmethod
    def figures(self) -> Figures:
        """What is shown while it runs: a name, a value and what it means."""

    @abstractmethod
    def report(self) -> Report:
        """Compare the results with the truth."""
