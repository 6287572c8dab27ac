"""What the sessions application reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic


@dataclass(frozen=True)
class View(Event):
    """A page that a user has seen, and how long it took to load."""

    user: str
    page: str
    load_ms: int
    at: datetime


@dataclass(frozen=True)
class Visit(Event, time="start"):
    """A session of a user; `kind` says whether it is the first result, a correction or a retraction."""

    user: str
    start: datetime
    end: datetime
    kind: str
    rows: int
    landing: str
    last: str
    median_ms: float
    p95_ms: float


views = Topic("sessions.views", View, key="user", partitions=2)
visits = Topic("sessions.visits", Visit, key="user", partitions=2)
too_late = Topic("sessions.too-late", View, key="user")
TOPICS = (views, visits, too_late)
