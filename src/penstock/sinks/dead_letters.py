"""Dead letters of a pipeline: malformed records and what was judged, in one transaction."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.log.judged import Decoder, Judged
from penstock.log.last_record import last_record
from penstock.log.ranges import Ranges
from penstock.log.transactional_writer import TransactionalWriter
from penstock.points import reach
from penstock.settings import Settings
from penstock.sinks.kafka import messages
from penstock.sinks.tasks import task_errors

_TIMEOUT_MS = 600_000  # a pipeline whose every record is malformed writes all of them at once


def judged_topic(pipeline: str) -> str:
    """The topic in which it is written down what was judged: one record for all topics of a pipeline."""
    return f"_penstock_judged.{pipeline}"


def dead_letter_label(pipeline: str) -> str:
    """What dead letters say that they were made by."""
    return f"{pipeline}.dead-letters"


def read_judged(settings: Settings, pipeline: str) -> Judged:
    """Return what has been judged, without shutting anybody out."""
    return Judged.from_json(last_record(settings, judged_topic(pipeline), 0, wait_for_open=False))


def write_dead_letters(malformed: DataFrame, work: "DeadLetterWork") -> int:
    """Write malformed records, unless they were; one task does it, as one writer is at work at a time."""
    with task_errors():
        done = malformed.repartition(1).mapInArrow(work, "sent long").collect()
    return int(done[0].sent) if done else work.write(())


@dataclass(frozen=True)
class DeadLetterWork:
    """What a task does with malformed records, of whose places `ranges` were looked through."""

    kafka: dict[str, str] = field(repr=False)
    pipeline: str
    decoders: Mapping[str, Decoder]
    ranges: Mapping[str, Ranges]

    def __call__(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"sent": pa.array([self.write(rows)], pa.int64())})

    def write(self, rows: Iterable[pa.RecordBatch]) -> int:
        """Write what was not judged before, and that it is judged now."""
        ledger = judged_topic(self.pipeline)
        writer = TransactionalWriter(
            Settings(kafka=self.kafka), f"penstock.{dead_letter_label(self.pipeline)}", ledger, _TIMEOUT_MS
        )
        before = Judged.from_json(writer.last_record(0))
        after = before
        for topic, ranges in self.ranges.items():
            after = after.adding(topic, self.decoders[topic], ranges)
        new = messages(self._new(batch, before) for batch in rows)
        sent = writer.write(new, (0, after.to_json()), lambda: reach("dead-letters.sent", self.pipeline))
        reach("dead-letters.written", self.pipeline)
        return sent

    def _new(self, batch: pa.RecordBatch, before: Judged) -> pa.RecordBatch:
        columns = (batch.column(name).to_pylist() for name in ("source", "partition", "offset"))
        places = zip(*columns, strict=True)
        known = {topic: before.known(topic, by).ranges for topic, by in self.decoders.items()}
        new = [not known[topic].holds(*place) for topic, *place in places]
        return batch.filter(pa.array(new, pa.bool_()))
