"""Retries: how often a request is tried again, and how long it is paused before."""

from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime

from penstock.durations import duration
from penstock.errors import TargetError


@dataclass(frozen=True)
class Retries:
    """Bounded retries with exponential backoff and full jitter.

    >>> Retries(attempts=3, backoff="1 second").pause(2, None, 0.5)
    1.0

    An event whose requests fail is tried `attempts` times in all. The pause before a retry is anything
    between nothing and `backoff`, doubled each time, `longest` at most. A receiver's Retry-After is waited
    for, but no longer than `longest` either.
    """

    attempts: int = 5
    backoff: str | timedelta = "500 ms"
    longest: str | timedelta = "30 seconds"

    def __post_init__(self) -> None:
        if not isinstance(self.attempts, int) or self.attempts < 1:
            raise TargetError(f"attempts is {self.attempts!r}, expected a number of at least 1")
        if duration(self.backoff) > duration(self.longest):
            raise TargetError(
                f"backoff is {self.backoff}, longer than longest, {self.longest}", hint="raise longest="
            )

    def pause(self, failed: int, retry_after: float | None, chance: float) -> float:
        """Return the seconds to pause after so many failures; `chance` is a number from 0 to 1."""
        longest = duration(self.longest).total_seconds()
        ceiling = min(longest, duration(self.backoff).total_seconds() * 2.0 ** min(failed - 1, 60))
        return min(longest, max(chance * ceiling, retry_after or 0.0))


def retry_after(text: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, as a number or as a date; None if it is neither.

    >>> retry_after("120", now=0.0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", now=0.0)
    (120.0, 60.0)
    """
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
