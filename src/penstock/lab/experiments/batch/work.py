"""The run: traffic through the till into the log, and two judges that read it there."""

import time
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from penstock.apps.fraud.thefts import START
from penstock.documents import JsonObject
from penstock.lab.experiments.batch.block_list import BlockList
from penstock.lab.experiments.batch.curve import Curve
from penstock.lab.experiments.batch.judges import BatchJudge, StreamJudge
from penstock.lab.experiments.batch.plan import EVERY, Plan
from penstock.lab.experiments.batch.till import Till

if TYPE_CHECKING:
    from penstock.lab.run import Run

_TICK, _FRAME = 0.01, 0.12  # seconds


def work(run: "Run") -> None:
    """Send the traffic, and show what passes under both block lists, until the time is over."""
    plan = Plan.of(run)
    run.report(
        f"a second here is {plan.speed} of the traffic" if plan.speed > 1 else "time is not compressed"
    )
    run.topics(plan.transactions, *plan.blocked.values())
    _Work(run, plan).go_on()


@dataclass
class _Work:
    run: "Run"
    plan: Plan
    began: float = field(default_factory=time.monotonic)
    sent_at: dict[str, float] = field(default_factory=dict)  # payments of stolen cards: since 1970
    drawn: list[JsonObject] = field(default_factory=list)

    def __post_init__(self) -> None:
        run, plan = self.run, self.plan
        self.traffic = deque(plan.thefts.transactions())
        self.producer = run.cleanup.enter_context(run.producer())
        self.lists = {name: BlockList(run, table) for name, table in plan.blocked.items()}
        self.till = Till(plan.thefts, self.lists)
        self.began = time.monotonic()
        self.batch = BatchJudge(run, plan, self.clock, self.every)
        self.stream = StreamJudge(run, plan)

    def clock(self) -> float:
        """How late it is in the traffic, in seconds since it began."""
        return (time.monotonic() - self.began) * self.plan.speed

    def every(self) -> int:
        return EVERY[self.run.value("every")]

    def go_on(self) -> None:
        shown = 0.0
        while True:  # until RunOver
            self.send()
            if time.monotonic() - shown > _FRAME:
                shown = time.monotonic()
                self.show()
            self.run.rest(_TICK)

    def send(self) -> None:
        """Take what is due by the clock: the till decides, and the log has it either way."""
        now = self.clock()
        while self.traffic and (self.traffic[0].at - START).total_seconds() <= now:
            act = self.traffic.popleft()
            if self.plan.thefts.is_stolen(act.card):
                self.sent_at[act.id] = time.time()
            self.drawn.append(self.till.decide(act))
            self.producer.send(self.plan.transactions, act)

    def show(self) -> None:
        for each in (
            self.batch.background,
            self.stream.background,
            *(each.background for each in self.lists.values()),
        ):
            each.check()
        self.run.flow(self.drawn)
        self.drawn = []
        stream, batch = (self.till.tallies[name].figures(name) for name in ("stream", "batch"))
        reaction = self.reaction()
        curve = Curve(self.till.fraud, self.alerts())
        takes = (reaction or 0.0) * self.plan.speed, self.batch.usual * self.plan.speed
        self.run.show(
            **stream,
            **batch,
            **self.progress(),
            reaction_ms=None if reaction is None else round(1000 * reaction, 1),
            curve=curve.points(*takes),
        )

    def progress(self) -> JsonObject:
        now, every = self.clock(), self.every()
        return {
            "speed": self.plan.speed,
            "every": every,
            "traffic_seconds": round(now, 1),
            "until_batch": round(max(0.0, self.batch.due - now), 2),
            "batches": self.batch.batches,
            "batch_ms": round(1000 * self.batch.took, 1),
            "transactions": self.till.sent,
            "fraudulent": self.till.fraudulent,
            "stolen": len(self.till.fraud),
            "found": len(self.lists["stream"].blocks),
            "found_by_batch": len(self.lists["batch"].blocks),
        }

    def alerts(self) -> dict[str, float]:
        """The second of the traffic of each card's first alert, as the stream has found it."""
        blocks = self.lists["stream"].blocks.copy().values()
        return {block.card: (block.at - START).total_seconds() for _, block in blocks}

    def reaction(self) -> float | None:
        """The median of the seconds from a payment to the till's knowing that its card is blocked."""
        blocks = list(self.lists["stream"].blocks.copy().values())[-50:]
        took = [seen - self.sent_at[_payment(block.alert)] for seen, block in blocks]
        return median(took) if took else None


def _payment(alert: str) -> str:
    """The id of the transaction that an alert is about, as it is part of the alert's."""
    return alert.rpartition("/")[0]
