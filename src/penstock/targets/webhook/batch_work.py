"""A lane's work on a batch: what is settled so far, and the record of it that is written now and then."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, islice

from penstock.log.transactional_writer import Message
from penstock.targets.webhook.circuit import CircuitState
from penstock.targets.webhook.delivery import Settled
from penstock.targets.webhook.event import Event
from penstock.targets.webhook.letters import letter
from penstock.targets.webhook.record import Progress, Record, chained

_EVERY = 5.0  # seconds between two records
_LETTERS = 200  # dead letters that are held until they are written
_HELD = 50_000  # events of a repeated batch that are held until it is known whether they were settled


@dataclass
class BatchWork:
    """What a lane has settled of a batch; `write` writes a record and dead letters in one transaction."""

    sink: str
    write: Callable[[Record, Iterable[Message]], None]
    record: Record
    progress: Progress
    letters: list[Message] = field(default_factory=list)
    _written: float = 0.0

    def left(self, events: Iterator[Event]) -> Iterator[Event]:
        """Return the events that are not settled: all of them, if they are not those that were."""
        count = self.progress.counts.settled
        held = list(islice(events, count if count <= _HELD else 0))
        digest = Progress(None).digest
        for event in held:
            digest = chained(digest, event.id)
        if len(held) == count and digest == self.progress.digest:
            return events
        self.progress = Progress(self.progress.batch)
        return chain(held, events)

    def add(self, settled: Settled) -> None:
        """Take down what has become of a request."""
        failure = settled.failure
        for event in settled.request.events:
            self.progress = self.progress.adding(event.id, dead=failure is not None)
            if failure is not None:
                self.letters.append(letter(self.sink, event, failure, datetime.now(UTC)))

    @property
    def is_due(self) -> bool:
        """Whether it is time for a record."""
        return len(self.letters) >= _LETTERS or time.monotonic() > self._written + _EVERY

    def save(self, circuit: CircuitState) -> None:
        """Write down how far it is."""
        self.record = self.record.begun(self.progress, circuit)
        self.write(self.record, self.letters)
        self.letters, self._written = [], time.monotonic()
