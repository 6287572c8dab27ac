"""A plain reader of a topic: it joins no group, reads what is committed, and says up to when it has all."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.lab.background import Background
from penstock.log.cursor import Cursor
from penstock.log.message import Received

if TYPE_CHECKING:
    from penstock.lab.run import Run

_REST = 0.04  # seconds


class TopicReader:
    """Hands messages to `take` as they come; `until` is up to when all were handed over."""

    def __init__(self, run: "Run", topic: str, take: Callable[[list[Received]], None]) -> None:
        self.until, self.count = 0.0, 0
        self._topic, self._take, self._settings = topic, take, run.settings
        self.background = Background(run, f"reader of {topic}", self._read)

    def _read(self, me: Background) -> None:
        with Cursor(self._topic, self._settings) as cursor:
            cursor.start()
            while not me.is_closing:
                asked = time.monotonic()
                for messages in cursor.chunks_to(cursor.ends()):
                    self._take(messages)
                    self.count += len(messages)
                self.until = asked
                me.rest(_REST)
