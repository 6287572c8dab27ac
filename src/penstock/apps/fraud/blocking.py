"""What a block list did to the transactions of cards that had had an alert."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Self

from penstock.apps.fraud.events import Alert, Transaction
from penstock.apps.fraud.expected import Judge


@dataclass(frozen=True)
class Blocking:
    """How many were refused, how many passed before the block reached them, and the money of both."""

    refused: int = 0
    passed: int = 0
    money_refused: Decimal = Decimal(0)
    money_passed: Decimal = Decimal(0)
    wrong: int = 0  # refused without an alert before

    @classmethod
    def of(cls, refusals: Iterable[Alert], judge: Judge) -> Self:
        """Sort what a judge has seen of such cards; refusals may have come twice."""
        ids = {each.id.removesuffix("/blocked") for each in refusals}
        refused = [act for id, act in judge.later.items() if id in ids]
        passed = [act for id, act in judge.later.items() if id not in ids]
        wrong = len(ids - judge.later.keys())
        return cls(len(refused), len(passed), _money(refused), _money(passed), wrong)


def _money(acts: list[Transaction]) -> Decimal:
    return sum((act.amount for act in acts), Decimal(0))
