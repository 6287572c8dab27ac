"""The trades application in its demo: quotes and reports in; quotes of trades and average prices out."""

import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Any, LiteralString, Self

import psycopg

from penstock.apps import demo
from penstock.apps.demo import Comparison, Figures, Work
from penstock.apps.demo.follower import Follower
from penstock.apps.demo.latency import Pace, latency_figures
from penstock.apps.trades.events import TOPICS, Priced, Quote, Report, priced, quotes, reports, too_late
from penstock.apps.trades.expected import Minute, Sides, Traded, quotes_of, traded_of
from penstock.apps.trades.pipeline import DELAY
from penstock.apps.trades.traffic import Traffic
from penstock.durations import duration
from penstock.log import Broker, Producer, apply
from penstock.settings import Settings

CLOSING = "closing"  # a symbol of its own, whose events move the watermarks past all others
_CLOSING = 16  # of them: each partition, and each lane of the flow between, gets some
_ONE = Decimal(1)
_ROWS: LiteralString = (
    "SELECT symbol, start, traded, volume FROM trades_vwap WHERE symbol NOT LIKE 'closing%'"
)
_WRONG: LiteralString = (
    "SELECT count(*) FROM trades_vwap WHERE vwap IS DISTINCT FROM round(traded / nullif(volume, 0), 6)"
)


class Trades(Work):
    """Sends quotes and reports, and compares each trade's quote and each minute's average price."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.traffic, self.pace = Traffic(), Pace()

    def __enter__(self) -> Self:
        apply(TOPICS, Broker(self.settings))
        self.producer = self.opened.enter_context(Producer(self.settings))
        self.priced = self.opened.enter_context(Follower(priced, self.settings))
        self.too_late = self.opened.enter_context(Follower(too_late, self.settings))
        return self

    def send(self, count: int) -> None:
        self._send(self.traffic.next() for _ in range(count))
        self.pace.note(self.traffic.now, time.time())

    def finish(self) -> None:
        """Send what is on its way, and an hour later a quote and a trade for every partition and lane."""
        self._send(self.traffic.rest())
        later = self.traffic.now + timedelta(hours=1)
        for symbol in (f"{CLOSING}-{number}" for number in range(_CLOSING)):
            self._send([Quote(symbol, _ONE, _ONE, later), Report(symbol, 1, symbol, _ONE, 1, later)])
        self.producer.flush()

    def _send(self, events: Iterable[Quote | Report]) -> None:
        for event in events:
            if isinstance(event, Quote):
                self.producer.send(quotes, event)
            else:
                self.producer.send(reports, event)

    def has_begun(self) -> bool:
        return len(self.priced) > 0

    def is_settled(self) -> bool:
        return not any(compared.problems for compared in self._compared())

    def figures(self) -> Figures:
        versions = Counter(report.version > 1 for report in self.traffic.reports)
        return [
            ("quotes", f"{len(self.traffic.quotes):,}", "of 20 symbols"),
            ("trades", f"{versions[False]:,}", f"{versions[True]:,} corrections"),
            ("beside their quotes", f"{len(self.priced):,}", "trades"),
        ]

    def report(self) -> demo.Report:
        by_trade, by_minute = self._compared()
        wrong, late = self._asked(_WRONG)[0][0], len(self.too_late)
        return demo.Report(
            f"{by_trade.due:,} trades have the quote of their moment, {by_minute.due:,} averages are right",
            [
                *self._counted(),
                *by_trade.figures("quotes of trades"),
                *by_minute.figures("average prices"),
                *self._latencies(),
            ],
            [
                *by_trade.problems,
                *by_minute.problems,
                *([f"{wrong:,} averages are not money by shares"] if wrong else []),
                *([f"{late:,} changes came too late"] if late else []),
            ],
        )

    def _compared(self) -> tuple[Comparison, Comparison]:
        traffic = self.traffic
        firsts = {report.id: report for report in traffic.reports if report.version == 1}
        found = [(each.trade, _sides(each)) for each in self.priced.events() if each.id in firsts]
        return (
            Comparison.of(quotes_of(firsts.values(), traffic.quotes), found),
            Comparison.of(traded_of(traffic.reports), self._rows()),
        )

    def _rows(self) -> list[tuple[Minute, Traded]]:
        return [((symbol, start), (money, shares)) for symbol, start, money, shares in self._asked(_ROWS)]

    def _asked(self, question: LiteralString) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.settings.dsn().value) as connection:
            return connection.execute(question).fetchall()

    def _counted(self) -> Figures:
        reports = self.traffic.reports
        corrections = sum(report.version > 1 for report in reports)
        cancelled = len({report.trade for report in reports if report.quantity == 0})
        corrected = f"{corrections:,} corrections, {cancelled:,} cancelled"
        return [
            ("quotes", f"{len(self.traffic.quotes):,}", "of 20 symbols"),
            ("trades", f"{len(reports) - corrections:,}", corrected),
        ]

    def _latencies(self) -> Figures:
        took = list[float]()
        for heard, trade in self.priced.heard():
            passed = self.pace.reached(trade.at + duration(DELAY))
            if passed is not None and self.is_steady(passed):
                took.append(heard - passed)
        return latency_figures(took, "from a trade that is past the watermark to its quote, before the kill")


def _sides(trade: Priced) -> Sides:
    return None if trade.bid is None or trade.ask is None else (trade.bid, trade.ask)
