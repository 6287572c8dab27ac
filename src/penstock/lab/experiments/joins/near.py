"""Clicks, and the impressions before them: most clicks come within half a minute, and some out of nowhere."""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from penstock.documents import JsonObject
from penstock.lab.experiments.joins.kind import Kind
from penstock.lab.experiments.joins.pipelines import Left, Right, left_of, pairs_of, right_of
from penstock.log import Producer, Topic

_CLICKED, _STRAY = 0.75, 0.1
_LATEST = 20.0  # seconds between an impression and its click


@dataclass(order=True)
class _Due:
    at: datetime
    key: str = field(compare=False)
    shown: int | None = field(compare=False)  # the impression that it belongs to
    shown_at: datetime = field(compare=False)


class Near(Kind):
    """An impression has at most one click, so each pair is known before it is found."""

    pipeline = "near"

    def __init__(self, prefix: str, reach: timedelta) -> None:
        super().__init__(prefix, reach)
        self._random = Random(1)  # noqa: S311
        self._due: list[_Due] = []
        self._pairs: set[tuple[int, int]] = set()  # click, impression
        self._single: dict[str, set[int]] = {"left": set(), "right": set()}
        self._found: Counter[tuple[int | None, int | None]] = Counter()

    @property
    def topics(self) -> Sequence[Topic[Any]]:
        return left_of(self.prefix), right_of(self.prefix), pairs_of(self.prefix)

    def send(self, producer: Producer, count: int) -> None:
        now = datetime.now(UTC)
        for _ in range(count):
            self._show(producer, now)
        while self._due and self._due[0].at <= now:
            self._click(producer, heapq.heappop(self._due))

    def _show(self, producer: Producer, now: datetime) -> None:
        n, random = self.sent["right"], self._random
        key = f"impression-{n}"
        producer.send(right_of(self.prefix), Right(key, n, now))
        self.draw_side("right", n, now)
        self._single["right"].add(n)
        if random.random() < _CLICKED:
            clicked = now + timedelta(seconds=random.uniform(0.5, _LATEST))
            heapq.heappush(self._due, _Due(clicked, key, n, now))
        if random.random() < _STRAY:
            heapq.heappush(self._due, _Due(now + timedelta(seconds=1), f"stray-{n}", None, now))

    def _click(self, producer: Producer, due: _Due) -> None:
        n = self.sent["left"]
        producer.send(left_of(self.prefix), Left(due.key, n, due.at))
        self.draw_side("left", n, due.at)
        shown = due.shown
        if shown is not None and due.at - due.shown_at <= self.reach:
            self._pairs.add((n, shown))
            self._single["right"].discard(shown)
        else:
            self._single["left"].add(n)

    def take(self, key: str, result: JsonObject | None) -> None:  # noqa: ARG002
        if result is None:
            return
        pair = result["left"], result["right"]
        self._found[pair] += 1
        self.draw_result(*pair, self._judged(pair))

    def _judged(self, pair: tuple[int | None, int | None]) -> str:
        if self._found[pair] > 1:
            return "wrong"
        match pair:
            case (None, int(right)):
                return "alone" if right in self._single["right"] else "wrong"
            case (int(left), None):
                return "alone" if left in self._single["left"] else "wrong"
        return "matched" if pair in self._pairs else "wrong"

    def compare(self) -> JsonObject:
        judged = Counter(map(self._judged, self._found))
        return {
            "matched": judged["matched"],
            "unmatched": judged["alone"],
            "truth_matched": len(self._pairs),
            "truth_unmatched": sum(map(len, self._single.values())),
            "wrong": judged["wrong"],
        }
