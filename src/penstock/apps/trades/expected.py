"""Quotes of trades and average prices, found plainly in all that was reported."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from penstock.apps.trades.events import Quote, Report

Sides = tuple[Decimal, Decimal] | None  # bid and ask
Minute = tuple[str, datetime]  # a symbol, and the start of a minute
Traded = tuple[Decimal, int]  # money and shares


def quotes_of(reports: Iterable[Report], quotes: Iterable[Quote]) -> dict[str, Sides]:
    """Return the quote of each trade's moment: the last one of its symbol that is not after it."""
    by_symbol: dict[str, list[Quote]] = defaultdict(list)
    for quote in sorted(quotes, key=lambda quote: quote.at):
        by_symbol[quote.symbol].append(quote)
    return {report.trade: _quote(by_symbol[report.symbol], report.at) for report in reports}


def _quote(quotes: list[Quote], at: datetime) -> Sides:
    place = bisect_right(quotes, at, key=lambda quote: quote.at)
    return (quotes[place - 1].bid, quotes[place - 1].ask) if place else None


def traded_of(reports: Iterable[Report]) -> dict[Minute, Traded]:
    """Return what was traded in each minute, by the newest version of each trade."""
    newest: dict[str, Report] = {}
    for report in reports:
        if report.version > getattr(newest.get(report.trade), "version", 0):
            newest[report.trade] = report
    found: dict[Minute, Traded] = defaultdict(lambda: (Decimal(0), 0))
    for report in newest.values():
        minute = report.symbol, report.at.replace(second=0, microsecond=0)
        money, shares = found[minute]
        found[minute] = money + report.price * report.quantity, shares + report.quantity
    return dict(found)
