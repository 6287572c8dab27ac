"""A block list as the till sees it: followed from its table in the log."""

import time
from typing import TYPE_CHECKING

from penstock.apps.fraud.events import Block
from penstock.lab.background import Background
from penstock.log import Consumer, Table

if TYPE_CHECKING:
    from penstock.lab.run import Run


class BlockList:
    """The cards that are blocked; `blocks` has each with when it was seen here, in seconds since 1970."""

    def __init__(self, run: "Run", table: Table[Block]) -> None:
        self.blocks: dict[str, tuple[float, Block]] = {}
        self._table, self._settings = table, run.settings
        self.background = Background(run, table.name, self._follow)

    def __contains__(self, card: str) -> bool:
        return card in self.blocks

    def _follow(self, me: Background) -> None:
        with Consumer(self._table, self._settings) as consumer:
            while not me.is_closing:
                for record in consumer.records(idle="100 ms"):
                    block = record.event
                    if block is not None:
                        self.blocks.setdefault(block.card, (time.time(), block))
                    if me.is_closing:
                        return
