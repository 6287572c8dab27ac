"""The click-through of campaigns, counted plainly from what is due for each impression."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from penstock.apps.ads.pipeline import WINDOW
from penstock.apps.ads.traffic import START, Outcomes
from penstock.durations import duration

Key = tuple[str, datetime]  # a campaign, and the start of a window
Value = tuple[int, int, int]  # impressions, those that were clicked, clicks


@dataclass
class _Counted:
    impressions: set[str] = field(default_factory=set)
    clicked: set[str] = field(default_factory=set)
    clicks: set[str] = field(default_factory=set)


def click_through_of(outcomes: Outcomes) -> dict[Key, Value]:
    """Return the counts of each campaign and window."""
    found: dict[Key, _Counted] = defaultdict(_Counted)
    for (impression, click, _), (campaign, at) in outcomes.items():
        counted = found[campaign, window_of(at)]
        counted.impressions.add(impression)
        if click is not None:
            counted.clicked.add(impression)
            counted.clicks.add(click)
    return {key: (len(each.impressions), len(each.clicked), len(each.clicks)) for key, each in found.items()}


def window_of(at: datetime) -> datetime:
    """The start of the window that a time is in."""
    return START + (at - START) // duration(WINDOW) * duration(WINDOW)
