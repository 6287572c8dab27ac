"""Dead letters of a pipeline: malformed records and what was judged, in one transaction."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from penstock.identity import Identity
from penstock.log.judged import Decoder, Judged
from penstock.log.last_record import last_record
from penstock.log.ranges import Ranges
from penstock.log.transactional_writer import TransactionalWriter
from penstock.points import reach
from penstock.settings import Settings
from penstock.targets.kafka.lane import messages
from penstock.targets.tasks import task_errors

_TIMEOUT_MS = 600_000  # a pipeline whose every record is malformed writes all of them at once


def read_judged(settings: Settings, maker: Identity) -> Judged:
    """Return what has been judged, without shutting anybody out: one record for all topics of a pipeline."""
    return Judged.from_json(last_record(settings, maker.judged, 0, wait_for_open=False))


def write_dead_letters(malformed: DataFrame, work: "DeadLetterWork") -> int:
    """Write malformed records, unless they were; one task does it, as one writer is at work at a time."""
    with task_errors():
        done = malformed.repartition(1).mapInArrow(work, "sent long").collect()
    return int(done[0].sent) if done else work.write(())


@dataclass(frozen=True)
class DeadLetterWork:
    """What a task does with malformed records, of whose places `ranges` were looked through.

    `maker` is who makes the dead letters of the pipeline.
    """

    kafka: dict[str, str] = field(repr=False)
    maker: Identity
    decoders: Mapping[str, Decoder]
    ranges: Mapping[str, Ranges]

    def __call__(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"sent": pa.array([self.write(rows)], pa.int64())})

    def write(self, rows: Iterable[pa.RecordBatch]) -> int:
        """Write what was not judged before, and that it is judged now."""
        settings, id = Settings(kafka=self.kafka), self.maker.transactional_id()
        writer = TransactionalWriter(settings, id, self.maker.judged, _TIMEOUT_MS)
        before = Judged.from_json(writer.last_record(0))
        after = before
        for topic, ranges in self.ranges.items():
            after = after.adding(topic, self.decoders[topic], ranges)
        new = messages(self._new(batch, before) for batch in rows)
        sent = writer.write(
            new, (0, after.to_json()), lambda: reach("dead-letters.sent", self.maker.pipeline)
        )
        reach("dead-letters.written", self.maker.pipeline)
        return sent

    def _new(self, batch: pa.RecordBatch, before: Judged) -> pa.RecordBatch:
        columns = (batch.column(name).to_pylist() for name in ("source", "partition", "offset"))
        places = zip(*columns, strict=True)
        known = {topic: before.known(topic, by).ranges for topic, by in self.decoders.items()}
        new = [not known[topic].holds(*place) for topic, *place in places]
        return batch.filter(pa.array(new, pa.bool_()))
