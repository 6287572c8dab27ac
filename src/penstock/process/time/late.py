"""What is done with events that come after their window's result: a value, checked when it is made."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from penstock.durations import duration
from penstock.errors import FlowError

if TYPE_CHECKING:
    from penstock.log import Topic


@dataclass(frozen=True)
class Late:
    """The policy for late events; make one with `drop`, `send` or `refire`.

    >>> Late.refire(within="10 minutes").then("late-views")
    Late(within=datetime.timedelta(seconds=600), side_output='late-views')
    """

    within: timedelta = timedelta(0)
    side_output: str | None = None

    @classmethod
    def drop(cls) -> "Late":
        """Leave late events out, and count them."""
        return cls()

    @classmethod
    def send(cls, topic: "Topic[Any] | str") -> "Late":
        """Send late events to a topic."""
        return cls().then(topic)

    @classmethod
    def refire(cls, *, within: str | timedelta) -> "Late":
        """Correct a window's result for as long after its end; what is later still is dropped and counted."""
        return cls(duration(within, zero=True))

    def then(self, topic: "Topic[Any] | str") -> "Late":
        """Send what is too late to be counted to a topic."""
        if self.side_output is not None:
            raise FlowError(f"late events go to {self.side_output!r} already")
        return replace(self, side_output=topic if isinstance(topic, str) else topic.name)
