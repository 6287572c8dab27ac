"""Shapes of windows: which stretches of time an event belongs to."""

from dataclasses import dataclass
from datetime import timedelta
from math import gcd

from pyspark.sql import Column
from pyspark.sql import functions as F

from penstock.durations import MICROSECOND
from penstock.errors import FlowError


@dataclass(frozen=True)
class Fixed:
    """Windows of one size, of which one begins every so often; aligned to the epoch, in UTC."""

    size: timedelta
    every: timedelta

    def __post_init__(self) -> None:
        if self.every > self.size:
            raise FlowError(
                f"windows of {self.size} every {self.every} leave gaps between them",
                hint="let them begin at least as often as they are long",
            )

    @property
    def pane(self) -> timedelta:
        """The longest stretch of which every window is made up."""
        return gcd(self.size // MICROSECOND, self.every // MICROSECOND) * MICROSECOND

    def column(self, time: Column) -> Column:
        return F.window(time, _spelled(self.size), _spelled(self.every))


@dataclass(frozen=True)
class Session:
    """Windows that last until nothing has come for the length of the gap; two that touch are one."""

    gap: timedelta

    def column(self, time: Column) -> Column:
        return F.session_window(time, _spelled(self.gap))


@dataclass(frozen=True)
class Sliding:
    """A window for each event: what is within the size before it, and itself."""

    size: timedelta


Shape = Fixed | Session | Sliding


def _spelled(length: timedelta) -> str:
    return f"{length // MICROSECOND} microseconds"
