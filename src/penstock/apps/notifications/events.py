"""What the notifications application reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic


@dataclass(frozen=True)
class Notification(Event):
    """A service asks that a user be notified of an occasion: an order that is on its way, say."""

    user: str
    occasion: str
    service: str
    text: str
    at: datetime


requested = Topic("notifications.requested", Notification, key="user", partitions=2)
due = Topic("notifications.due", Notification, key="user", partitions=2)
too_late = Topic("notifications.too-late", Notification, key="user")
TOPICS = (requested, due, too_late)
