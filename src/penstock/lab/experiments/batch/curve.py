"""Loss against interval: what the log of this run would have cost with a batch every N seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from penstock.apps.fraud.thefts import Block
from penstock.documents import JsonObject
from penstock.lab.experiments.batch.plan import EVERY

Payments = Mapping[str, Sequence[tuple[float, Decimal]]]


@dataclass(frozen=True)
class Curve:
    """`payments` are those of stolen cards, `alerts` the second of each card's first alert.

    All of a card's payments until its block are counted, those before its alert included.
    """

    payments: Payments
    alerts: Mapping[str, float]

    def loss(self, block: Block) -> tuple[int, Decimal]:
        """How many payments, and how much money, pass if cards are blocked so."""
        passed = [
            amount
            for card, paid in self.payments.items()
            for at, amount in paid
            if card not in self.alerts or at <= block.of(self.alerts[card])
        ]
        return len(passed), sum(passed, Decimal(0))

    def points(self, stream_takes: float, batch_takes: float) -> list[JsonObject]:
        """The loss in real time and for each interval; what judging takes is as it was measured."""
        blocks = {"real time": Block(stream_takes)}
        blocks |= {name: Block(batch_takes, every) for name, every in EVERY.items()}
        found = {name: (block.every, *self.loss(block)) for name, block in blocks.items()}
        return [
            {"label": name, "every": every, "payments": count, "money": float(money)}
            for name, (every, count, money) in found.items()
        ]
