"""When the state of a stream is kept, so that loading it costs the snapshot and the events behind it."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from penstock.durations import duration
from penstock.errors import ConfigurationError


@dataclass(frozen=True)
class Snapshots:
    """A snapshot each `every` events, or when the last one is older than `age` and events came after it.

    >>> Snapshots(every=100).is_due(behind=99, taken=None, now=None)
    False

    `every=None` with `age=None` keeps none.
    """

    every: int | None = 100
    age: str | timedelta | None = None

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 1:
            raise ConfigurationError(f"a snapshot every {self.every} events", hint="at least 1, or None")
        if self.age is not None:
            duration(self.age)

    def is_due(self, behind: int, taken: datetime | None, now: datetime | None) -> bool:
        """Whether to take one: `behind` events came after the last, which was taken at `taken`."""
        if behind < 1:
            return False
        if self.every is not None and behind >= self.every:
            return True
        aged = self.age is not None and taken is not None and now is not None
        return aged and now - taken >= duration(self.age)  # type: ignore[operator, arg-type]
