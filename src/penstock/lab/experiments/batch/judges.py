"""Two judges with the same rules: one reads each transaction as it comes, one everything every N seconds."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from statistics import median
from typing import TYPE_CHECKING

from penstock.apps.fraud.events import Block, Transaction
from penstock.apps.fraud.expected import Judge
from penstock.apps.fraud.thefts import MODEL
from penstock.lab.background import Background
from penstock.lab.experiments.batch.plan import Plan
from penstock.log import Consumer, Producer
from penstock.log.cursor import Cursor

if TYPE_CHECKING:
    from penstock.lab.run import Run

_REMEMBERED = 50  # batches


class _Judging:
    """The rules of the fraud application; the first alert of a card puts it on the judge's block list."""

    def __init__(self, run: "Run", plan: Plan, name: str) -> None:
        self._run, self._plan = run, plan
        self._table = plan.blocked[name]
        self._rules = Judge({each.card: each for each in plan.thefts.profiles()}, MODEL)
        self._blocked: set[str] = set()
        self.background = Background(run, f"{name} judge", self._judge_all)

    def _judge_all(self, me: Background) -> None:
        raise NotImplementedError

    def _judge(self, acts: Iterable[Transaction], producer: Producer) -> int:
        """Judge transactions one after the other; return how many cards are blocked for them."""
        before = len(self._blocked)
        for act in acts:
            for alert in self._rules.alerts([act]):
                if act.card not in self._blocked:
                    self._blocked.add(act.card)
                    producer.send(self._table, Block(act.card, alert, act.at))
        return len(self._blocked) - before


class StreamJudge(_Judging):
    """Reads each transaction as it comes."""

    def __init__(self, run: "Run", plan: Plan) -> None:
        super().__init__(run, plan, "stream")

    def _judge_all(self, me: Background) -> None:
        with (
            Consumer(self._plan.transactions, self._run.settings) as consumer,
            self._run.producer(linger="1 ms") as producer,
        ):
            while not me.is_closing:
                for record in consumer.records(idle="100 ms"):
                    if record.event is not None:
                        self._judge([record.event], producer)
                    if me.is_closing:
                        return


class BatchJudge(_Judging):
    """Reads, every N seconds of the traffic, all that has come since; `clock` says how late it is there."""

    def __init__(self, run: "Run", plan: Plan, clock: Callable[[], float], every: Callable[[], int]) -> None:
        self.batches, self.took, self.last = 0, 0.0, 0.0
        self._times: deque[float] = deque(maxlen=_REMEMBERED)
        self._clock, self._every = clock, every
        super().__init__(run, plan, "batch")

    @property
    def usual(self) -> float:
        """The seconds that a batch takes: their median."""
        return median(self._times or (0.0,))

    @property
    def due(self) -> float:
        """The second of the traffic in which the next batch begins."""
        return self.last + self._every()

    def _judge_all(self, me: Background) -> None:
        settings = self._run.settings
        with Cursor(self._plan.transactions.name, settings) as cursor, self._run.producer() as producer:
            cursor.start()
            while not me.is_closing:
                if self._clock() < self.due:
                    me.rest(0.01)
                    continue
                every = self._every()
                self.last = self._clock() // every * every
                self._run_batch(cursor, producer)

    def _run_batch(self, cursor: Cursor, producer: Producer) -> None:
        began = time.monotonic()
        values = [each.value() for each in cursor.read_to(cursor.ends())]
        decoded = self._plan.transactions.codec().decode_all(values)
        found = self._judge((each for each in decoded.events if each is not None), producer)
        producer.flush()
        self.batches += 1
        self.took = time.monotonic() - began
        self._times.append(self.took)
        if self._every() >= 60 or found:
            self._run.report(
                f"batch {self.batches}: {len(values):,} transactions in {1000 * self.took:,.0f} ms, "
                f"new on the block list: {found}"
            )
