"""Payments beside the rows of a table: some come late, and rows change meanwhile."""

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from penstock.documents import JsonObject
from penstock.lab.experiments.joins.kind import Kind
from penstock.lab.experiments.joins.pipelines import Left, Right, left_of, pairs_of, rows_of
from penstock.log import Producer, Topic

_CARDS, _UNKNOWN = 24, 4  # of so many cards, the last ones have no row
_LATE, _MOST_LATE = 0.3, 6.0  # the share of payments that come late, and by how many seconds at most
_CHANGES = 0.4  # of a row, for each payment


class _Beside(Kind):
    """The truth is the row that was valid at a payment's own time."""

    def __init__(self, prefix: str, reach: timedelta) -> None:
        super().__init__(prefix, reach)
        self._random = Random(1)  # noqa: S311
        self._versions: dict[str, list[tuple[datetime, int]]] = defaultdict(list)
        self._truth: dict[int, int | None] = {}
        self._found: dict[int, int | None] = {}
        self._late: deque[tuple[datetime, str, datetime]] = deque()
        self._repeated = 0

    @property
    def topics(self) -> Sequence[Topic[Any]]:
        return left_of(self.prefix), rows_of(self.prefix), pairs_of(self.prefix)

    def send(self, producer: Producer, count: int) -> None:
        if not self._versions:
            for card in range(_CARDS - _UNKNOWN):
                self._change(producer, f"card-{card}", self.began - timedelta(minutes=1))
        for _ in range(count):
            self._pay(producer, datetime.now(UTC))

    def _pay(self, producer: Producer, now: datetime) -> None:
        random = self._random
        if random.random() < _CHANGES:
            self._change(producer, f"card-{random.randrange(_CARDS - _UNKNOWN)}", now)
        late = random.uniform(1, _MOST_LATE) if random.random() < _LATE else 0.0
        key, n, at = f"card-{random.randrange(_CARDS)}", self.sent["left"], now - timedelta(seconds=late)
        self._truth[n] = self._valid(key, at)
        producer.send(left_of(self.prefix), Left(key, n, at))
        self.draw_side("left", n, at, late=late > 0)

    def _change(self, producer: Producer, key: str, now: datetime) -> None:
        n = self.sent["right"]
        self._versions[key].append((now, n))
        producer.send(rows_of(self.prefix), Right(key, n, now))
        self.draw_side("right", n, now)

    def _valid(self, key: str, at: datetime) -> int | None:
        versions = self._versions.get(key, [])
        place = bisect_right(versions, at, key=lambda each: each[0])
        return versions[place - 1][1] if place else None

    def take(self, key: str, result: JsonObject | None) -> None:  # noqa: ARG002
        if result is None:
            return
        left, right = result["left"], result["right"]
        self._repeated += left in self._found
        self._found[left] = right
        self.draw_result(left, right, _JUDGED[self._judged(left, right)])

    def _judged(self, left: int, right: int | None) -> str:
        truth = self._truth.get(left, -1)
        if right == truth:
            return "unmatched" if truth is None else "matched"
        if right is None or truth is None or truth < 0:
            return "missing"
        return "newer" if right > truth else "older"

    def compare(self) -> JsonObject:
        judged = Counter(self._judged(*each) for each in self._found.items())
        alone = sum(1 for each in self._truth.values() if each is None)
        return {
            "matched": judged["matched"],
            "unmatched": judged["unmatched"],
            "truth_matched": len(self._truth) - alone,
            "truth_unmatched": alone,
            "newer": judged["newer"],
            "older": judged["older"],
            "wrong": judged["newer"] + judged["older"] + judged["missing"] + self._repeated,
        }


_JUDGED = {"matched": "matched", "unmatched": "alone", "newer": "wrong", "older": "wrong", "missing": "wrong"}


class Latest(_Beside):
    """The row of now: where a payment is late, that of its own time is gone."""

    pipeline = "latest"


class AsOf(_Beside):
    """The row of its time."""

    pipeline = "as_of"
