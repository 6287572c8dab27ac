"""What the tour sends: payments, keyed by card."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Annotated

from penstock.events import Event, Precision
from penstock.log import Topic


@dataclass(frozen=True)
class Payment(Event):
    card: str
    amount: Annotated[Decimal, Precision(12, 2)]
    lat: float
    lon: float
    at: datetime


payments = Topic("tour.payments", Payment, key="card", partitions=6)
_START = datetime(2026, 1, 1, tzinfo=UTC)


def make_payments(count: int, seed: int = 1) -> Iterator[Payment]:
    """Yield payments of 5,000 cards, a millisecond apart; the same for the same seed."""
    random = Random(seed)  # noqa: S311
    for number in range(count):
        yield Payment(
            card=f"card-{random.randrange(5000):04d}",
            amount=Decimal(random.randrange(100, 50_000)) / 100,
            lat=random.uniform(-60, 60),
            lon=random.uniform(-180, 180),
            at=_START + timedelta(milliseconds=number),
            id=f"payment-{number:07d}",
        )
