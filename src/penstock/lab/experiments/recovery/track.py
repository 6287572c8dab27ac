"""A flow and what comes out of it: its results as a plain reader sees them, and where its checkpoint is."""

import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.documents import JsonObject
from penstock.lab.checkpoint_files import CheckpointFiles
from penstock.lab.experiments.recovery.tally import Tally
from penstock.lab.topic_reader import TopicReader
from penstock.log.message import Received

if TYPE_CHECKING:
    from penstock.lab.run import Run

_LOOKS = 200


@dataclass
class Track:
    """`name` is what it is shown as, `sample` every how many events one is drawn."""

    run: "Run"
    name: str
    results: str  # the topic
    source: str
    files: CheckpointFiles
    sample: int
    tally: Tally = field(default_factory=Tally)
    shown: deque[JsonObject] = field(default_factory=deque)
    _looks: deque[tuple[float, dict[int, int]]] = field(default_factory=lambda: deque(maxlen=_LOOKS))
    _batches: tuple[int | None, int | None] = (None, None)

    def __post_init__(self) -> None:
        self.reader = TopicReader(self.run, self.results, self._take)

    def _take(self, messages: list[Received]) -> None:
        numbers = [json.loads(each.value() or b"{}")["n"] for each in messages]
        seen = self.tally.seen
        drawn = [n for n in numbers if n % self.sample == 0]
        self.shown.extend({"kind": "out", "flow": self.name, "n": n, "again": bool(seen[n])} for n in drawn)
        self.tally.add_results(numbers)

    def look(self) -> None:
        """See where the checkpoint stands, and settle what a reader has had the time to read."""
        self.reader.background.check()
        self._looks.append((time.monotonic(), self.position))
        ready = [position for at, position in self._looks if at < self.reader.until]
        if ready:
            self.tally.settle(ready[-1])
        batches = self.files.planned, self.files.committed
        if batches != self._batches:
            self._batches = batches
            self.shown.append({"kind": "batch", "flow": self.name, "planned": batches[0], "done": batches[1]})

    @property
    def position(self) -> dict[int, int]:
        """Where the flow has committed that it has read its source."""
        return dict(self.files.end(self.files.committed).get(self.source, {}))

    def figures(self) -> JsonObject:
        planned = self.files.end(self.files.planned).get(self.source, {})
        return {
            **self.tally.figures(),
            "results": self.reader.count,
            "batch": self.files.committed,
            "position": sum(self.position.values()),
            "planned_batch": self.files.planned,
            "planned": sum(planned.values()),
            "mark": self.tally.number_at(self.position),
        }

    def strip(self, numbers: Sequence[int]) -> str:
        """What has become of some events, a sign each: exact 1, doubled 2, lost 0, not here yet a dot."""
        return "".join(self._sign(number) for number in numbers)

    def _sign(self, number: int) -> str:
        count = self.tally.seen[number]
        if count:
            return "1" if count == 1 else "2"
        return "0" if self.tally.is_lost(number) else "."
