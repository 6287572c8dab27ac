"""What the kinds of joins have in common here: traffic of which the truth is known, and results beside it."""

import json
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from penstock.documents import JsonObject
from penstock.log import Producer, Topic
from penstock.log.message import Received


class Kind(ABC):
    """Sends the two sides, and knows what their join is to find; `pipeline` names the flow that joins.

    `sent` counts what was sent of each side. What is drawn is in `shown`, with times in seconds since the
    beginning.
    """

    pipeline: ClassVar[str]

    def __init__(self, prefix: str, reach: timedelta) -> None:
        self.prefix, self.reach = prefix, reach
        self.sent = {"left": 0, "right": 0}
        self.results = 0
        self.shown: deque[JsonObject] = deque()
        self.began = datetime.now(UTC)
        self._lock = threading.Lock()

    @property
    @abstractmethod
    def topics(self) -> Sequence[Topic[Any]]:
        """What is read, and, last, what is written."""

    @abstractmethod
    def send(self, producer: Producer, count: int) -> None:
        """Send so many events of the left side, and those of the right side that go with them."""

    @abstractmethod
    def take(self, key: str, result: JsonObject | None) -> None:
        """Note a result."""

    @abstractmethod
    def compare(self) -> JsonObject:
        """Compare: `matched` and `unmatched` results, both as the `truth` has them, and `wrong` ones."""

    def take_all(self, messages: Sequence[Received]) -> None:
        """Note results as they stand in their topic."""
        with self._lock:
            for each in messages:
                value = each.value()
                self.results += 1
                self.take((each.key() or b"").decode(), None if value is None else json.loads(value))

    def figures(self) -> JsonObject:
        """What is shown of it."""
        with self._lock:
            found = self.compare()
        return {**found, "results": self.results, **{f"sent_{side}": n for side, n in self.sent.items()}}

    def draw_side(self, side: str, n: int, at: datetime, **more: Any) -> None:
        """Draw an event of a side."""
        self.sent[side] += 1
        self.shown.append({"kind": side, "n": n, "t": self.second(at), **more})

    def draw_result(self, left: int | None, right: int | None, judged: str) -> None:
        """Draw a result, as `judged`: matched, alone or wrong."""
        self.shown.append({"kind": "result", "left": left, "right": right, "judged": judged})

    def second(self, at: datetime) -> float:
        return round((at - self.began).total_seconds(), 2)
