"""A circuit: after so many failures of an endpoint it is left alone for a while, then probed."""

from dataclasses import dataclass, replace
from datetime import timedelta

from penstock.durations import duration
from penstock.errors import TargetError


@dataclass(frozen=True)
class CircuitState:
    """How often the endpoint has failed in a row, and until when, in seconds since 1970, it is left alone."""

    failures: int = 0
    until: float = 0.0


@dataclass(frozen=True)
class Circuit:
    """When the circuit opens, how long it stays so, and how long a batch waits for it.

    >>> Circuit(failures=2).failed(CircuitState(1), now=100.0)
    CircuitState(failures=2, until=115.0)

    It opens after `failures` in a row: requests that the endpoint has failed, or events that were given up.
    Then nothing is sent for `rest`, and one probe after it; each probe that fails means another rest. A batch
    waits no longer than `wait` in all: then it fails, and its flow tries it again.
    """

    failures: int = 5
    rest: str | timedelta = "15 seconds"
    wait: str | timedelta = "1 minute"

    def __post_init__(self) -> None:
        if not isinstance(self.failures, int) or self.failures < 1:
            raise TargetError(f"failures is {self.failures!r}, expected a number of at least 1")
        if duration(self.rest) > duration(self.wait):
            raise TargetError(
                f"rest is {self.rest}, longer than a batch waits, {self.wait}", hint="raise wait="
            )

    def failed(self, state: CircuitState, now: float) -> CircuitState:
        """Return the state after another failure."""
        counted = replace(state, failures=min(state.failures + 1, self.failures))
        return replace(counted, until=now + self.pause) if self.is_open(counted) else counted

    def is_open(self, state: CircuitState) -> bool:
        return state.failures >= self.failures

    @property
    def pause(self) -> float:
        return duration(self.rest).total_seconds()

    @property
    def patience(self) -> float:
        return duration(self.wait).total_seconds()

    def left(self, state: CircuitState, now: float) -> float:
        """Return the seconds of the rest that are left; never more than one, whatever a clock says."""
        return max(0.0, min(state.until - now, self.pause))
