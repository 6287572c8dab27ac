"""The alerts that the log calls for, found plainly: transaction by transaction, in the order of the log."""

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from penstock.apps.fraud.events import Model, Profile, Transaction

_EARTH_KM = 6371.0088
_TEN_MINUTES = timedelta(minutes=10)


@dataclass
class Judge:
    """Sees the transactions of a partition one after another.

    `later` are those of a card after its first alert, by their ids: a block list may refuse them.
    """

    profiles: dict[str, Profile]
    model: Model
    later: dict[str, Transaction] = field(default_factory=dict)
    _suspects: set[str] = field(default_factory=set)
    _spent: dict[str, deque[Transaction]] = field(default_factory=lambda: defaultdict(deque))
    _failed: dict[str, deque[Transaction]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=3))
    )

    def alerts(self, transactions: Iterable[Transaction]) -> dict[str, list[str]]:
        """Return the evidence of each alert by its id."""
        return {
            f"{act.id}/{reason}": [each.id for each in evidence]
            for act in transactions
            for reason, evidence in self._reasons(act)
        }

    def _reasons(self, act: Transaction) -> Iterator[tuple[str, list[Transaction]]]:
        if act.kind == "login_failed":
            self._failed[act.card].append(act)
            return
        if act.card in self._suspects:
            self.later[act.id] = act
        for found in self._suspicions(act):
            self._suspects.add(act.card)
            yield found

    def _suspicions(self, act: Transaction) -> Iterator[tuple[str, list[Transaction]]]:
        yield from self._broken_rules(act)
        failed = [each for each in self._failed[act.card] if act.at - each.at < _TEN_MINUTES]
        if act.kind == "transfer" and act.amount > 1000 and len(failed) == 3:
            yield "taken-over", [*failed, act]

    def _broken_rules(self, act: Transaction) -> Iterator[tuple[str, list[Transaction]]]:
        spent = self._spent[act.card]
        while spent and act.at - spent[-1].at >= _TEN_MINUTES:
            spent.pop()
        spent.appendleft(act)
        minute = [each for each in spent if act.at - each.at < timedelta(minutes=1)]
        if len(minute) > 5:
            yield "many", minute
        if sum(each.amount for each in spent) > 5000:
            yield "much", list(spent)
        if len(spent) > 1 and _speed(act, spent[1]) > 500:
            yield "fast", [act, spent[1]]
        if self._score(act) > 0.9:
            yield "model", [act]

    def _score(self, act: Transaction) -> float:
        profile = self.profiles[act.card]
        far = _kilometres(act.lat, act.lon, profile.home_lat, profile.home_lon)
        seen = {"ratio": math.log(float(act.amount) / profile.usual), "far": math.log1p(far)}
        total = self.model.bias + sum(self.model.weights[name] * value for name, value in seen.items())
        return 1 / (1 + math.exp(-total))


def _speed(act: Transaction, before: Transaction) -> float:
    way = _kilometres(act.lat, act.lon, before.lat, before.lon)
    hours = (act.at - before.at) / timedelta(hours=1)
    return way / hours if hours else math.inf * (way > 0)


def _kilometres(lat: float, lon: float, other_lat: float, other_lon: float) -> float:
    north, east = math.radians(lat - other_lat) / 2, math.radians(lon - other_lon) / 2
    round_ = math.cos(math.radians(lat)) * math.cos(math.radians(other_lat)) * math.sin(east) ** 2
    return 2 * _EARTH_KM * math.asin(math.sqrt(min(1.0, math.sin(north) ** 2 + round_)))
