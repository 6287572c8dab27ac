"""What the trades application reads and writes."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated

from penstock.events import Event, Precision
from penstock.log import Topic

Price = Annotated[Decimal, Precision(12, 2)]
Money = Annotated[Decimal, Precision(18, 2)]


@dataclass(frozen=True)
class Quote(Event):
    """What a share can be sold and bought for, from a moment on."""

    symbol: str
    bid: Price
    ask: Price
    at: datetime


@dataclass(frozen=True)
class Report(Event):
    """A trade as the exchange reports it. Later versions replace it; one without a quantity cancels it."""

    trade: str
    version: int
    symbol: str
    price: Price
    quantity: int
    at: datetime


@dataclass(frozen=True)
class Priced(Event):
    """A trade beside the quote of its moment, if there was one."""

    trade: str
    symbol: str
    price: Price
    bid: Price | None
    ask: Price | None
    at: datetime


@dataclass(frozen=True)
class Change(Event):
    """What a version of a trade adds to all that was traded at its time, and may take away."""

    trade: str
    version: int
    symbol: str
    money: Money
    shares: int
    at: datetime


quotes = Topic("trades.quotes", Quote, key="symbol", partitions=2)
reports = Topic("trades.reports", Report, key="symbol", partitions=2)
priced = Topic("trades.priced", Priced, key="symbol")
changes = Topic("trades.changes", Change, key="symbol")
too_late = Topic("trades.too-late", Change, key="symbol")
TOPICS = (quotes, reports, priced, changes, too_late)
