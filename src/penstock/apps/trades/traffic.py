"""Quotes and reports of trades in the order of their arrival, with cancelled and replaced trades."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from heapq import heappop, heappush
from random import Random

from penstock.apps.trades.events import Quote, Report

START = datetime(2026, 1, 1, 9, tzinfo=UTC)
EVERY = timedelta(milliseconds=100)  # between two things that happen
SYMBOLS = tuple(f"S{number:02}" for number in range(20))
_CENT = Decimal("0.01")


class Traffic:
    """An endless stream of quotes and reports; `quotes` and `reports` are those that were sent.

    Most arrive within a second, one in ten up to eight seconds late, so that a trade may be known before its
    quote. One trade in ten is replaced or cancelled, up to ten minutes later; some corrections overtake the
    trade that they correct, and some come twice.
    """

    def __init__(self, seed: int = 1) -> None:
        self.quotes: list[Quote] = []
        self.reports: list[Report] = []
        self._random = Random(seed)  # noqa: S311
        self._waiting: list[tuple[datetime, int, Quote | Report]] = []
        self._prices = {symbol: 10_000 + 500 * place for place, symbol in enumerate(SYMBOLS)}  # in cents
        self._happened, self._made = 0, 0

    @property
    def now(self) -> datetime:
        """When the next thing happens."""
        return START + self._happened * EVERY

    def next(self) -> Quote | Report:
        """Return what arrives next."""
        while not self._waiting or self._waiting[0][0] >= self.now:
            self._happen()
        return self._sent(heappop(self._waiting)[2])

    def rest(self) -> Iterator[Quote | Report]:
        """Yield what is still on its way; nothing more happens."""
        while self._waiting:
            yield self._sent(heappop(self._waiting)[2])

    def _sent(self, event: Quote | Report) -> Quote | Report:
        if isinstance(event, Quote):
            self.quotes.append(event)
        else:
            self.reports.append(event)
        return event

    def _happen(self) -> None:
        at, symbol = self.now, self._random.choice(SYMBOLS)
        self._happened += 1
        if self._random.random() < 0.7:
            self._quote(symbol, at)
        if self._random.random() < 0.4:  # now and then at the very moment of a quote
            self._trade(symbol, at)

    def _quote(self, symbol: str, at: datetime) -> None:
        self._prices[symbol] = max(100, self._prices[symbol] + self._random.randrange(-20, 21))
        bid, spread = self._prices[symbol], self._random.randrange(1, 6)
        self._arrive(Quote(symbol, bid * _CENT, (bid + spread) * _CENT, at, id=f"q{self._happened}"), at)

    def _trade(self, symbol: str, at: datetime) -> None:
        random, trade = self._random, f"t{self._happened}"
        self._arrive(self._report(trade, 1, symbol, at), at)
        if random.random() < 0.1:
            soon = random.choice((0.0, random.uniform(1, 600)))  # at once: it may overtake the trade
            for version in range(2, random.choice((3, 3, 4))):
                corrected = self._report(trade, version, symbol, at, cancelled=random.random() < 0.4)
                for _ in range(random.choice((1, 1, 1, 2))):
                    self._arrive(corrected, at + timedelta(seconds=soon + version / 10))

    def _report(
        self, trade: str, version: int, symbol: str, at: datetime, *, cancelled: bool = False
    ) -> Report:
        price = (self._prices[symbol] + self._random.randrange(-5, 6)) * _CENT
        quantity = 0 if cancelled else self._random.randrange(1, 500)
        return Report(trade, version, symbol, price, quantity, at, id=f"{trade}.{version}")

    def _arrive(self, event: Quote | Report, sent: datetime) -> None:
        late = self._random.choice((*[0.5] * 9, 8.0)) * self._random.random()
        self._made += 1
        heappush(self._waiting, (sent + timedelta(seconds=late), self._made, event))
