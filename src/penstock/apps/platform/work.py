"""Both applications at work: transactions of cards and of the shop in, alerts and views out."""

from math import inf
from typing import Self

from penstock.apps import demo
from penstock.apps.demo import Figures, Report
from penstock.apps.fraud import bank_table
from penstock.apps.platform.cards import Cards
from penstock.apps.platform.pipeline import ORDERS
from penstock.apps.shop import work as shop
from penstock.settings import Settings

CARDS_FOR_ONE_ORDER = 10  # transactions of cards for each of the shop's


class Work(demo.Work):
    """Sends both kinds of traffic; one service of the shop stands still for a while."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._shop = shop.Work(settings, flows=ORDERS)
        self._shop.began = self.began
        self.awaited = (*ORDERS, "each_once")
        self._owed = 0

    def __enter__(self) -> Self:
        self.opened.enter_context(self._shop)
        self._cards = Cards(self.settings, self.opened)
        self.unhurt = (self._cards.capture, *self._shop.processes)
        return self

    def begin(self, stage: str) -> None:
        if stage == "start":
            self._cards.capture.start()
        self._shop.begin(stage)
        if stage == "start":
            bank_table.await_captured(self.settings)

    def send(self, count: int) -> None:
        self._cards.send(count)
        orders, self._owed = divmod(self._owed + count, CARDS_FOR_ONE_ORDER)
        self._shop.send(orders)

    def has_begun(self) -> bool:
        return self._cards.has_begun and self._shop.has_begun()

    def keeps_up(self) -> bool:
        return self._cards.is_prompt and self._shop.keeps_up()

    def finish(self) -> None:
        self._cards.flush()
        self._shop.finish()

    def is_settled(self) -> bool:
        return self._shop.is_settled()

    def figures(self) -> Figures:
        return [*self._cards.figures(), *self._shop.figures()]

    def report(self) -> Report:
        since, until = self.began.get("steady", inf), self.began.get("kill", inf)
        cards, shop = self._cards.report(since, until), self._shop.report()
        figures = [*cards.figures, ("", "", ""), *shop.figures]
        return Report(f"{cards.claim}; {shop.claim}", figures, [*cards.problems, *shop.problems])
