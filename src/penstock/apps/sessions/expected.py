"""The visits that views make, found plainly: all views of a user, sorted, cut where half an hour is empty."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import groupby
from math import ceil, floor, isclose

from penstock.apps.sessions.events import View

GAP = timedelta(minutes=30)
Key = tuple[str, datetime]  # a user, and the start of the visit
Value = tuple[datetime, int, str, str, float, float]  # end, views, first and last page, median and p95


def visits_of(views: Iterable[View]) -> dict[Key, Value]:
    """Return the visits of views that are in the log's order, which counts among those of one moment."""
    ordered = sorted(views, key=lambda view: (view.user, view.at))
    by_user = groupby(ordered, key=lambda view: view.user)
    return {(user, each[0].at): _visit(each) for user, found in by_user for each in _sessions(found)}


def same(one: Value, other: Value) -> bool:
    """Whether two visits are the same, but for the last bits of percentiles."""
    return one[:4] == other[:4] and all(map(isclose, one[4:], other[4:]))


def _sessions(views: Iterable[View]) -> Iterator[list[View]]:
    session: list[View] = []
    for view in views:
        if session and view.at > session[-1].at + GAP:
            yield session
            session = []
        session.append(view)
    if session:
        yield session


def _visit(views: list[View]) -> Value:
    loads = sorted(view.load_ms for view in views)
    ends = views[-1].at + GAP, len(views)
    return *ends, views[0].page, views[-1].page, _percentile(loads, 0.5), _percentile(loads, 0.95)


def _percentile(values: list[int], share: float) -> float:
    place = share * (len(values) - 1)
    low, high = values[floor(place)], values[ceil(place)]
    return low + (high - low) * (place - floor(place))
