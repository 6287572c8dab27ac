"""Which batches of a flow are settled: their malformed records are in the dead letters.

With a sink of ours a batch is settled before it is committed. Where Spark writes by itself, it commits by
itself, and the batch is settled right behind; a mark beside the checkpoint says which was the last.
"""

import json

from penstock.documents import JsonObject
from penstock.errors import FlowError, LogError
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.decoders import DecoderStarts
from penstock.pipeline.job import Job
from penstock.pipeline.malformed import Judge
from penstock.pipeline.plan import Planner
from penstock.points import reach

_MARK = "settled.json"  # beside the checkpoint
_SINK = "sink"  # who settles, where a sink of ours writes


def is_of_spark(checkpoint: Checkpoint) -> bool:
    """Whether Spark has begun to write by itself: results may be out although nothing was committed."""
    text = checkpoint.read(_MARK)
    return text is not None and json.loads(text).get("by") != _SINK


class SettledBatches:
    """Settles what a flow has committed and not settled yet."""

    def __init__(
        self, job: Job, planner: Planner, judge: Judge, checkpoint: Checkpoint, starts: DecoderStarts
    ) -> None:
        self._job, self._planner, self._judge, self._checkpoint = job, planner, judge, checkpoint
        self._starts = starts
        self._running: dict[str, str] | None = None  # the decoder of the query that runs

    def settle_past(self) -> None:
        """Settle what others left: an earlier release, or Spark when it still wrote by itself.

        From now on a batch is settled before it is committed.
        """
        if (self._mark or {}).get("by") != _SINK:
            self.settle_committed()
            self._write(self._committed, by=_SINK)

    def settle_or_roll_back(self) -> None:
        """Settle what was committed before a crash; if it was by another decoder, let it be worked on again.

        The one that judged the records is gone, and the one that is there may judge otherwise. Such flows
        may write a result again: readers know it by its id. The mark names the decoder that is to run before
        that one commits anything.
        """
        mark = self._mark
        if mark is not None and mark.get("by") != _SINK:
            if mark["batch"] < self._committed and mark["decoder"] != self._decoder:
                self._checkpoint.roll_back(mark["batch"])
            self.settle_committed()
        elif mark is None:
            self.settle_committed()
        self._write(self._committed)

    def settle_committed(self) -> None:
        """Settle the batches that were committed since the last one that is settled."""
        last, committed = (self._mark or {"batch": -1})["batch"], self._committed
        if committed <= last:
            return
        if self._running is not None and self._running != self._decoder:
            raise LogError(f"schemas were learned while flow {self._job.label!r} ran: it is planned again")
        start, end = self._checkpoint.end_of(last), self._checkpoint.end_of(committed)
        if not end:
            raise FlowError(f"the checkpoint {self._checkpoint.path} does not have its batch {committed}")
        reads = {topic.name for topic in self._job.topics}
        tables = {table.name for table in self._job.flow.looks_up.values()}
        self._judge.judge(self._job, reads, tables, self._starts.since(), start, end)
        reach("flow.settled", self._job.label)
        self._write(committed)

    @property
    def _mark(self) -> JsonObject | None:
        text = self._checkpoint.read(_MARK)
        return None if text is None else dict(json.loads(text))

    @property
    def _committed(self) -> int:
        found = self._checkpoint.last_committed()
        return -1 if found is None else found

    @property
    def _decoder(self) -> dict[str, str]:
        topics = {topic.name: topic for topic in (*self._job.topics, *self._job.flow.looks_up.values())}
        return {name: self._planner.decoder(topic) for name, topic in sorted(topics.items())}

    def _write(self, batch: int, by: str = "spark") -> None:
        self._running = self._decoder
        self._checkpoint.write(_MARK, json.dumps({"batch": batch, "decoder": self._running, "by": by}))
