"""What the page views application reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Table, Topic


@dataclass(frozen=True)
class View(Event):
    """Somebody looked at a page, on a desktop or on a mobile; a mobile may send it minutes later."""

    url: str
    visitor: str
    device: str
    at: datetime


@dataclass(frozen=True)
class PageMinute(Event, time="start"):
    """How often a page was viewed in a minute, as far as is known: the next one of its id replaces it.

    `written` is when the last view that it counts came into the log.
    """

    url: str
    start: datetime
    views: int
    written: datetime


@dataclass(frozen=True)
class PageCount:
    """About how often a page was viewed."""

    url: str
    views: int


@dataclass(frozen=True)
class TopPages(Event, time="end"):
    """About the most viewed pages of a minute, by a sketch, the first one first; `views` are those of all."""

    start: datetime
    end: datetime
    views: int
    pages: list[PageCount]


views = Topic("pageviews.views", View, key="url", partitions=2)
too_late = Topic("pageviews.too-late", View, key="url")
live = Table("pageviews.live", PageMinute, key="id")
about = Table("pageviews.about", TopPages, key="id")
TOPICS = (views, too_late, live, about)
