"""What a run of the bank is doing at this moment, for a screen to show."""

import time
from collections.abc import Callable

from penstock.apps.run_status import RunStatus

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


class Status(RunStatus):
    """A run of the bank, and the figures that are shown of it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(STAGES, clock)
        self.figures: Callable[[], Figures] = list
