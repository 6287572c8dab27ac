"""Traffic with labelled fraud: honest payments, five kinds of fraud, and acts that only look like it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

from penstock.apps.fraud.events import Case, Profile, Transaction

EVERY = 25  # one of so many acts is of a scenario, the others are honest payments
AT_ONCE = 10  # scenarios
_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
_RICH, _PLAIN = 1500.0, 30.0  # what is usually paid
_NEAR, _THOUSAND_KM = 0.003, 9.0  # degrees


@dataclass(frozen=True)
class Act:
    """What is done next with a card; `reason` labels what the alert has to say, if there is to be one."""

    kind: str
    amount: float
    north: float = 0.0  # degrees from home
    reason: str | None = None


def _many(random: Random) -> Iterator[Act]:
    """A stolen card is tried eight times."""
    for number in range(8):
        yield Act("payment", random.uniform(5, 25), reason="many" if number >= 5 else None)


def _much(random: Random) -> Iterator[Act]:  # noqa: ARG001
    for number in range(4):
        yield Act("payment", 1500, reason="much" if number == 3 else None)


def _fast(random: Random) -> Iterator[Act]:
    """In a shop at home, and in one a thousand kilometres away."""
    yield Act("payment", random.uniform(20, 40))
    yield Act("payment", random.uniform(20, 40), north=_THOUSAND_KM, reason="fast")


def _model(random: Random) -> Iterator[Act]:
    """Far and much: mostly fraud, now and then a holiday; and some fraud is careful."""
    if random.random() < 0.2:
        yield Act("payment", _PLAIN * random.lognormvariate(1, 0.5), north=random.uniform(0.5, 5))
    else:
        yield Act("payment", _PLAIN * random.lognormvariate(3, 0.4), random.uniform(2, 7), "model")


def _taken_over(random: Random) -> Iterator[Act]:
    for _ in range(3):
        yield Act("login_failed", 0)
    yield Act("transfer", random.uniform(1010, 1400), reason="taken-over")


def _busy(random: Random) -> Iterator[Act]:
    """Five payments in a minute are allowed."""
    for _ in range(5):
        yield Act("payment", random.uniform(5, 25))


def _forgetful(random: Random) -> Iterator[Act]:
    """Two failed logins are allowed, too."""
    for _ in range(2):
        yield Act("login_failed", 0)
    yield Act("transfer", random.uniform(1010, 1400))


SCENARIOS: tuple[Callable[[Random], Iterator[Act]], ...] = (
    _many, _much, _fast, _model, _taken_over, _busy, _forgetful,
)  # fmt: skip
_OF_THE_RICH = (_much, _taken_over, _forgetful)
REASONS = ("many", "much", "fast", "model", "taken-over")


class Traffic:
    """An endless stream of transactions; `labels` are the ids of the alerts that are to come of them.

    Honest cards take turns, so that none pays too often; each scenario has a card of its own.
    """

    def __init__(self, honest: int, scenarios: int, seed: int = 1) -> None:
        self.labels: set[str] = set()
        self.sent = 0
        self._random = Random(seed)  # noqa: S311
        self._honest, self._scenarios = honest, scenarios
        self._begun = 0
        self._open: list[tuple[int, Iterator[Act]]] = []

    def profiles(self) -> Iterator[Profile]:
        """Yield the profiles of all cards."""
        for card in range(self._honest + self._scenarios):
            scenario = SCENARIOS[(card - self._honest) % len(SCENARIOS)] if card >= self._honest else None
            usual = _RICH if scenario in _OF_THE_RICH else _PLAIN
            yield Profile(_card(card), *_home(card), usual, id=_card(card))

    def next(self, at: datetime) -> Transaction:
        """Return what happens at a time."""
        self.sent += 1
        found = self._scenario() if self.sent % EVERY == 0 else None
        if found is None:
            near = self._random.uniform(-_NEAR, _NEAR)
            found = self.sent % self._honest, Act("payment", self._random.uniform(5, 60), near)
        card, act = found
        lat, lon = _home(card)
        place = lat + act.north, lon
        amount = Decimal(round(100 * act.amount)) / 100
        made = Transaction(_card(card), f"user-{card // 2}", act.kind, amount, *place, at, id=f"t{self.sent}")
        if act.reason is not None:
            self.labels.add(f"{made.id}/{act.reason}")
        return made

    def _scenario(self) -> tuple[int, Act] | None:
        """The next act of one of the scenarios that have begun."""
        while len(self._open) < AT_ONCE and self._begun < self._scenarios:
            make = SCENARIOS[self._begun % len(SCENARIOS)]
            self._open.append((self._honest + self._begun, make(self._random)))
            self._begun += 1
        while self._open:
            card, acts = self._open.pop(0)
            act = next(acts, None)
            if act is not None:
                self._open.append((card, acts))
                return card, act
        return None


def past_cases(count: int, seed: int = 1) -> Iterator[Case]:
    """Yield labelled transactions of the past: one of twenty was fraud."""
    random = Random(seed)  # noqa: S311
    for number in range(count):
        fraud = number % 20 == 0
        amount, north = random.lognormvariate(0, 0.5), random.uniform(-_NEAR, _NEAR)
        if fraud:
            amount, north = random.lognormvariate(3, 0.5), random.uniform(1.5, 8)
        elif number % 20 in (1, 2):  # a large purchase at home
            amount = random.lognormvariate(2.5, 0.5)
        elif number % 20 in (3, 4):  # a holiday
            north = random.uniform(0.5, 10)
        usual = random.choice((_PLAIN, _RICH))
        home = _home(number)
        there = (home[0] + north, home[1])
        yield Case(_card(number), usual * amount, *there, *home, usual, fraud, _LONG_AGO, id=f"case-{number}")


def _card(number: int) -> str:
    return f"card-{number:06d}"


def _home(card: int) -> tuple[float, float]:
    return 40 + card % 13, card % 31
