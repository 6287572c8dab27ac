"""What a run is made of: how fast its time passes, its traffic, and its topics."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from penstock.apps.fraud.events import Block, Transaction
from penstock.apps.fraud.thefts import Thefts
from penstock.log import Table, Topic

if TYPE_CHECKING:
    from penstock.lab.run import Run

EVERY = {"1 s": 1, "5 s": 5, "15 s": 15, "1 min": 60, "5 min": 300, "15 min": 900, "1 h": 3600}
SPEEDS = {"real time": 1, "10 times faster": 10, "60 times faster": 60}
_HONEST_RATE = {1: 20, 10: 8, 60: 3}  # payments in a second of the traffic
_BETWEEN_THEFTS = {1: 5.0, 10: 20.0, 60: 60.0}  # seconds of the traffic
_PER_CARD = 50  # seconds between two payments of an honest card
_LASTS = 3600.0  # seconds, after which the owner has noticed


@dataclass(frozen=True)
class Plan:
    """A second here is `speed` seconds of the traffic: its events are dated so, and batches run by it."""

    speed: int
    thefts: Thefts
    transactions: Topic[Transaction]
    blocked: dict[str, Table[Block]]

    @classmethod
    def of(cls, run: "Run") -> Self:
        """Plan a run by the values of its controls."""
        speed = SPEEDS[run.value("speed")]
        seconds = run.experiment.seconds * speed
        rate = _HONEST_RATE[speed]
        thefts = Thefts(
            hours=seconds / 3600,
            rate=rate,
            honest=_PER_CARD * rate,
            stolen=round(seconds / _BETWEEN_THEFTS[speed]),
            over=seconds,
            lasts=_LASTS,
        )
        blocked = {
            judge: Table(run.name(f"blocked.{judge}"), Block, key="card") for judge in ("stream", "batch")
        }
        topic = Topic(run.name("transactions"), Transaction, key="card", partitions=2)
        return cls(speed, thefts, topic, blocked)
