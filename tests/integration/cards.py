"""Payments with cards and profiles of their holders: what the tests of tables beside events send."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from penstock.events import Event

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = "_source struct<topic:string,partition:int,offset:long,written:timestamp>"


def at(seconds):
    return START + timedelta(seconds=seconds)


@dataclass(frozen=True)
class Payment(Event):
    card: str
    at: datetime


@dataclass(frozen=True)
class Profile(Event):
    card: str
    home: str
    at: datetime


@dataclass(frozen=True)
class Known(Event):
    """A payment, and the home of the card's holder."""

    card: str
    home: str | None
    at: datetime
