"""Stolen cards that are used until somebody stops them: what passes before the block, for any delay of it."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

from penstock.apps.fraud.events import Model, Profile, Transaction

START = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model("logistic", -12.47, {"ratio": 2.77, "far": 1.22}, START)  # as the training makes it
_HOME = 48.2, 16.4
_USUAL = 30.0


@dataclass(frozen=True)
class Thefts:
    """Honest cards that take turns, and thieves who try a card six times and then pay on and on.

    `hours` is how long the log is, `rate` how many honest payments there are in a second. Thefts begin within
    `over` seconds, and each `lasts` until the owner notices.
    """

    hours: float = 3.0
    rate: int = 20
    honest: int = 1_000
    stolen: int = 200
    every: float = 20.0  # seconds between two payments of a thief, on average
    seed: int = 1
    over: float = 3600.0
    lasts: float = math.inf

    def profiles(self) -> Iterator[Profile]:
        """Yield the profiles of all cards."""
        for number in range(self.honest + self.stolen):
            yield Profile(_card(number), *_HOME, _USUAL, id=_card(number))

    def is_stolen(self, card: str) -> bool:
        """Whether a card is one of the stolen ones, all of whose payments are fraud."""
        return int(card.removeprefix("card-")) >= self.honest

    def transactions(self) -> list[Transaction]:
        """Return all payments, in the order of their times."""
        made = [*self._honest(), *self._stolen()]
        made.sort(key=lambda each: each[0])
        return [_paid(number, *each) for number, each in enumerate(made)]

    def _honest(self) -> Iterator[tuple[float, int, float]]:
        random = Random(self.seed)  # noqa: S311
        for number in range(int(self.hours * 3600 * self.rate)):
            yield number / self.rate, number % self.honest, random.uniform(5, 60)

    def _stolen(self) -> Iterator[tuple[float, int, float]]:
        random = Random(self.seed + 1)  # noqa: S311
        for number in range(self.stolen):
            at = random.uniform(0, self.over)
            end = min(self.hours * 3600, at + self.lasts)
            for count in range(100_000):
                yield at, self.honest + number, random.lognormvariate(4, 0.6)
                at += random.uniform(2, 6) if count < 6 else random.expovariate(1 / self.every)
                if at >= end:
                    break


@dataclass(frozen=True)
class Passed:
    """What passed after the alert and before the block: payments and their money, over all cards."""

    payments: int
    money: Decimal

    @classmethod
    def before_block(
        cls,
        alerts: Mapping[str, float],
        payments: Mapping[str, Sequence[tuple[float, Decimal]]],
        block: "Block",
    ) -> "Passed":
        """`alerts` has the second of each card's first alert, `payments` the seconds and amounts of all."""
        found = [
            amount
            for card, alert in alerts.items()
            for at, amount in _between(payments[card], alert, block.of(alert))
        ]
        return cls(len(found), sum(found, Decimal(0)))


@dataclass(frozen=True)
class Block:
    """When a card is blocked: at once, or when the batch is done in which its alert is found.

    >>> Block(takes=0.1).of(61.0), Block(every=60, takes=5).of(61.0)
    (61.1, 125)
    """

    takes: float
    every: float = 0.0

    def of(self, alert: float) -> float:
        """The second in which a card is blocked."""
        found = math.ceil(alert / self.every) * self.every if self.every else alert
        return found + self.takes


def _between(
    payments: Sequence[tuple[float, Decimal]], after: float, until: float
) -> Sequence[tuple[float, Decimal]]:
    times = [at for at, _ in payments]
    return payments[bisect_right(times, after) : bisect_right(times, until)]


def _paid(number: int, at: float, card: int, amount: float) -> Transaction:
    money = Decimal(round(100 * amount)) / 100
    moment = START + timedelta(seconds=at)
    return Transaction(_card(card), f"user-{card}", "payment", money, *_HOME, moment, id=f"t{number}")


def _card(number: int) -> str:
    return f"card-{number:05d}"
