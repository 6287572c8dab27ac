"""What the ads application reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic


@dataclass(frozen=True)
class Impression(Event):
    """An ad of a campaign was shown to somebody; `impression` is what a click on it refers to."""

    impression: str
    campaign: str
    at: datetime


@dataclass(frozen=True)
class Click(Event):
    """Somebody clicked on an ad; browsers send some clicks twice, with the same `click`."""

    impression: str
    click: str
    at: datetime


@dataclass(frozen=True)
class Outcome(Event):
    """An impression with a click of the hour after it, or without one; `at` is when it was shown."""

    impression: str
    campaign: str
    click: str | None
    at: datetime


impressions = Topic("ads.impressions", Impression, key="impression", partitions=2)
clicks = Topic("ads.clicks", Click, key="impression", partitions=2)
outcomes = Topic("ads.outcomes", Outcome, key="impression")
TOPICS = (impressions, clicks, outcomes)
