"""The till: it asks both block lists about each payment, and counts what passes and what does not."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from penstock.apps.fraud.events import Transaction
from penstock.apps.fraud.thefts import START, Thefts
from penstock.documents import JsonObject
from penstock.lab.experiments.batch.block_list import BlockList


@dataclass
class Tally:
    """What came of the payments under one block list."""

    counts: Counter[tuple[bool, bool]] = field(default_factory=Counter)  # (is fraud, is refused)
    money: dict[tuple[bool, bool], Decimal] = field(default_factory=lambda: defaultdict(Decimal))

    def add(self, act: Transaction, *, is_fraud: bool, is_refused: bool) -> None:
        self.counts[is_fraud, is_refused] += 1
        self.money[is_fraud, is_refused] += act.amount

    def figures(self, name: str) -> JsonObject:
        """What is shown of it; `honest` are those refused for nothing."""
        return {
            f"{name}_passed": self.counts[True, False],
            f"{name}_refused": self.counts[True, True],
            f"{name}_money": float(self.money[True, False]),
            f"{name}_saved": float(self.money[True, True]),
            f"{name}_honest": self.counts[False, True],
        }


class Till:
    """Decides as a real one would: by what it knows of the block lists at that moment."""

    def __init__(self, thefts: Thefts, lists: Mapping[str, BlockList]) -> None:
        self.tallies = {name: Tally() for name in lists}
        self.fraud: dict[str, list[tuple[float, Decimal]]] = defaultdict(list)  # by card: second, amount
        self.sent, self.fraudulent = 0, 0
        self._thefts, self._lists = thefts, lists

    def decide(self, act: Transaction) -> JsonObject:
        """Let a payment pass or not, under each block list; return how it is drawn."""
        is_fraud = self._thefts.is_stolen(act.card)
        refused = {name: act.card in each for name, each in self._lists.items()}
        for name, tally in self.tallies.items():
            tally.add(act, is_fraud=is_fraud, is_refused=refused[name])
        self.sent += 1
        if is_fraud:
            self.fraudulent += 1
            self.fraud[act.card].append(((act.at - START).total_seconds(), act.amount))
        return {"fraud": is_fraud, "amount": float(act.amount), **refused}
