"""A lane: the part of a sink's rows that is written in transactions of its own, with its own ledger."""

from collections.abc import Iterable
from dataclasses import replace

from penstock.log.last_record import last_record
from penstock.log.ledger import Batch, Entry
from penstock.log.transactional_writer import Message, TransactionalWriter
from penstock.points import reach
from penstock.settings import Settings


def ledger_topic(sink: str) -> str:
    """The topic of a sink's ledger: a partition for each lane, compacted to the last entry."""
    return f"_penstock_ledger.{sink}"


def read_entry(settings: Settings, sink: str, number: int) -> Entry:
    """Return what a lane wrote down last, without becoming its writer."""
    return Entry.from_record(last_record(settings, ledger_topic(sink), number, wait_for_open=False))


class Lane:
    """Writes rows and their entry in one transaction."""

    def __init__(self, settings: Settings, sink: str, number: int, timeout_ms: int) -> None:
        self.number = number
        self._sink = sink
        self._epoch = 0
        self._writer = TransactionalWriter(
            settings, f"penstock.{sink}.{number}", ledger_topic(sink), timeout_ms
        )
        self.entry = Entry.from_record(self._writer.last_record(number))
        reach("sink.kafka.opened", sink)

    def claim(self, epoch: int, *, anew: bool = False) -> None:
        """Write down that a new writer is at work, so that an older one can't come back."""
        self._epoch = epoch
        self._write_down(Entry(epoch) if anew else replace(self.entry, epoch=epoch))
        reach("sink.kafka.claimed", self._sink)

    def serve(self, epoch: int) -> None:
        """Write for the writer of this epoch, unless it is over."""
        self.entry.refuse_older(epoch, self._sink)
        self._epoch = epoch

    def write(self, messages: Iterable[Message], batch: Batch) -> int:
        """Write a batch's rows unless they were written; return how many."""
        if not self.entry.is_due(batch):
            return 0
        sent = self._write_down(Entry(self._epoch, batch), messages)
        reach("sink.kafka.committed", self._sink)
        return sent

    def write_at_most_once(self, messages: Iterable[Message], batch: Batch) -> int:
        """Write the entry first: what is lost on the way to the rows stays lost."""
        if not self.entry.is_due(batch):
            return 0
        entry = Entry(self._epoch, batch)
        self._write_down(entry)
        reach("sink.kafka.committed", self._sink)
        return self._write_down(entry, messages)

    def _write_down(self, entry: Entry, messages: Iterable[Message] = ()) -> int:
        def sent_all() -> None:
            if entry.batch is not None:
                reach("sink.kafka.sent", self._sink)

        sent = self._writer.write(messages, (self.number, entry.to_json()), sent_all)
        self.entry = entry
        return sent
