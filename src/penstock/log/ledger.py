"""The ledger: what a sink has taken in, by the offset ranges of the log that it came from.

Batch numbers alone can't be trusted: a checkpoint that was lost and made anew counts from 0 again, and "skip
what is not newer" would then drop everything. So a sink writes down the whole batch, and a new one has to
begin where the last one ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import msgspec

from penstock.errors import FencedError, LedgerError

Offsets = Mapping[str, Mapping[int, int]]  # topic, partition, the offset that comes next


@dataclass(frozen=True)
class Batch:
    """A batch of a flow: its checkpoint, its number there, and where in the log it starts and ends.

    Offsets mean something in the topic that they are of: one that was made again has another id.
    """

    checkpoint: str
    number: int
    start: Offsets = field(default_factory=dict)
    end: Offsets = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict, compare=False)  # the ids of those that it is of

    def follows(self, last: "Batch") -> bool:
        """Say whether this batch begins where another ended; a partition that is new may be added."""
        expected = last.number + 1 if self.checkpoint == last.checkpoint else 0
        joined = all(
            self.start.get(topic, {}).get(partition) == offset
            for topic, partitions in last.end.items()
            for partition, offset in partitions.items()
        )
        return self.number == expected and joined

    def __str__(self) -> str:
        where = f"{_listed(self.start)} to {_listed(self.end)}"
        return f"batch {self.number} of checkpoint {self.checkpoint[:8]} ({where})"


@dataclass(frozen=True)
class Entry:
    """What a sink wrote down last: the epoch of its writer, and the batch it holds, if it holds one."""

    epoch: int = 0
    batch: Batch | None = None

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        return msgspec.json.decode(text, type=cls)

    @classmethod
    def from_record(cls, value: bytes | None) -> Self:
        """Read a record of the ledger; none has been written yet where there is none."""
        return cls() if value is None else cls.from_json(value)

    def is_due(self, batch: Batch) -> bool:
        """Say whether a batch is still to be written; refuse one that does not follow what was written."""
        if self.batch is None:
            return True
        if (self.batch.checkpoint, self.batch.number) == (batch.checkpoint, batch.number):
            if self.batch != batch:
                raise _misfit(self.batch, batch, "the same number stands for another offset range")
            return False
        if not batch.follows(self.batch):
            raise _misfit(self.batch, batch, "the one does not begin where the other ended")
        return True

    def refuse_older(self, epoch: int, sink: str) -> None:
        """Refuse a writer whose epoch is over: it was taken for dead, and another one works in its place."""
        if self.epoch > epoch:
            raise FencedError(
                f"sink {sink!r} has a writer of epoch {self.epoch}, this one has {epoch}",
                hint="the flow runs in another process: stop one of the two",
            )


def _misfit(written: Batch, batch: Batch, why: str) -> LedgerError:
    return LedgerError(
        f"the sink has written {written}, the checkpoint goes on with {batch}: {why}",
        hint="the checkpoint was lost, replaced or restored: bring the right one back, or let a flow without "
        "state go on from the ledger with `penstock run --from-ledger`",
    )


def _listed(offsets: Offsets) -> str:
    places = (f"{topic}[{p}]@{offset}" for topic, each in offsets.items() for p, offset in each.items())
    return ", ".join(places) or "nothing"
