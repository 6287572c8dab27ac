"""A consumer that counts by both times, and can be stopped: its position waits for it in the group."""

import threading
from collections import Counter
from datetime import UTC, datetime

from penstock.documents import JsonObject
from penstock.lab.background import Background
from penstock.lab.experiments.windows.views import View
from penstock.lab.run import Run
from penstock.log import Consumer, Topic

_SHOWN = 60  # seconds


class CountingConsumer:
    """Counts the views of each second: of when it got them, and of when they happened."""

    def __init__(self, run: Run, topic: Topic[View], began: datetime) -> None:
        self.is_stopped = False
        self._joined = threading.Event()
        self.by_processing: Counter[int] = Counter()
        self.by_event: Counter[int] = Counter()
        self._run, self._topic, self._began = run, topic, began
        self._group = run.group("counting")
        self.background = Background(run, "counting consumer", self._work)

    @property
    def has_joined(self) -> bool:
        """Whether its group has given it the partition: what comes before would look like a spike."""
        return self._joined.is_set()

    def figures(self, now: float) -> JsonObject:
        """The counts of the last seconds, and the most of a second by either time."""
        first = max(0, int(now) - _SHOWN)
        seconds = range(first, int(now) + 1)
        return {
            "by_second": [[each, self.by_processing[each], self.by_event[each]] for each in seconds],
            "most_processing": max(self.by_processing.values(), default=0),
            "most_event": max(self.by_event.values(), default=0),
            "consumed": self.by_processing.total(),
            "is_stopped": self.is_stopped,
        }

    def _work(self, me: Background) -> None:
        while not me.is_closing:
            if self.is_stopped:
                me.rest(0.1)
                continue
            with Consumer(
                self._topic, self._run.settings, group=self._group, on_rebalance=lambda _: self._joined.set()
            ) as consumer:
                while not (self.is_stopped or me.is_closing):
                    self._read(me, consumer)

    def _read(self, me: Background, consumer: Consumer[View]) -> None:
        """Count until nothing comes or it is stopped: the batch it is stopped at is read again later."""
        for batch in consumer.batches(500, "20 ms", idle="400 ms"):
            if self.is_stopped or me.is_closing:
                return
            second = int((datetime.now(UTC) - self._began).total_seconds())
            for event in batch.events:
                if event is not None:
                    self.by_processing[second] += 1
                    self.by_event[int((event.at - self._began).total_seconds())] += 1
