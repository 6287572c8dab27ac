"""What goes in and what comes out: views of users, and how many there were in a window."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic


@dataclass(frozen=True)
class View(Event):
    """A user has looked at a page; `n` numbers all views of a run."""

    user: str
    n: int
    at: datetime


@dataclass(frozen=True)
class Counted(Event, time="end"):
    """How many views a user had in a window; in a sliding one, `n` is the view that it ends with."""

    user: str
    start: datetime
    end: datetime
    kind: str
    rows: int
    n: int | None = None


def views_of(prefix: str) -> Topic[View]:
    """What is counted; one partition, so that there is one writer's watermark."""
    return Topic(f"{prefix}views", View, key="user", partitions=1)


def counted_of(prefix: str) -> Topic[Counted]:
    """The results of all windows."""
    return Topic(f"{prefix}counted", Counted, key="user")


def late_of(prefix: str) -> Topic[View]:
    """The side output for late views."""
    return Topic(f"{prefix}late", View, key="user")
