"""A record of the ledger: a lane's entry, how far it is in the next batch, and what it has counted."""

from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Self

import msgspec

from penstock.log.ledger import Batch, Entry
from penstock.targets.webhook.circuit import CircuitState


@dataclass(frozen=True)
class Counts:
    """How many events were delivered, and how many are dead letters."""

    delivered: int = 0
    dead: int = 0

    @property
    def settled(self) -> int:
        return self.delivered + self.dead

    def adding(self, other: "Counts") -> "Counts":
        return Counts(self.delivered + other.delivered, self.dead + other.dead)


@dataclass(frozen=True)
class Progress:
    """How far a lane is in a batch: the events that are settled, by their number and a digest of their ids.

    A batch that is repeated goes on behind them if the same events come in the same order.
    """

    batch: Batch | None
    counts: Counts = field(default_factory=Counts)
    digest: str = sha256().hexdigest()

    def adding(self, id: str, *, dead: bool) -> "Progress":
        """Return this with another event settled."""
        one = Counts(dead=1) if dead else Counts(delivered=1)
        return Progress(self.batch, self.counts.adding(one), chained(self.digest, id))


def chained(digest: str, id: str) -> str:
    """Return the digest of ids with one more."""
    return sha256(f"{digest} {id}".encode()).hexdigest()


@dataclass(frozen=True)
class Record:
    """What a lane writes down; read as an `Entry`, it is that of its last whole batch."""

    epoch: int = 0
    batch: Batch | None = None
    counts: Counts = field(default_factory=Counts)  # of whole batches
    progress: Progress | None = None
    circuit: CircuitState = field(default_factory=CircuitState)

    @classmethod
    def from_value(cls, value: bytes | None) -> Self:
        """Read a record of the ledger; none has been written yet where there is none."""
        return cls() if value is None else msgspec.json.decode(value, type=cls)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @property
    def entry(self) -> Entry:
        return Entry(self.epoch, self.batch)

    @property
    def total(self) -> Counts:
        return self.counts.adding(self.progress.counts) if self.progress else self.counts

    def claimed(self, entry: Entry) -> "Record":
        """Return this with an entry that comes without rows; one that forgets the batch forgets all."""
        if entry.batch is None and self.batch is not None:
            return Record(entry.epoch)
        if entry.batch == self.batch:
            return replace(self, epoch=entry.epoch)
        return self.finished(entry, Progress(entry.batch), self.circuit)

    def begun(self, progress: Progress, circuit: CircuitState) -> "Record":
        """Return this on its way through a batch."""
        return replace(self, progress=progress, circuit=circuit)

    def finished(self, entry: Entry, progress: Progress, circuit: CircuitState) -> "Record":
        """Return this with a batch that is over."""
        return Record(entry.epoch, entry.batch, self.counts.adding(progress.counts), None, circuit)
