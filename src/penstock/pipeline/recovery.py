"""Going on from the ledger: a flow without state that lost its checkpoint stands where its sink does."""

from collections.abc import Callable

from pyspark.sql import DataFrame

from penstock.errors import FlowError, LedgerError
from penstock.log.ledger import Batch, Entry, Offsets
from penstock.pipeline.checkpoint import Checkpoint, is_within
from penstock.pipeline.job import Job
from penstock.pipeline.malformed import observed_in
from penstock.pipeline.pinning import PASSED
from penstock.pipeline.plan import Planner, Span
from penstock.pipeline.read_topics import ReadTopics
from penstock.pipeline.state import is_stateful
from penstock.points import reach
from penstock.process.spark.java import Java
from penstock.targets.sink import Sink

Settle = Callable[[Batch, Java], None]


class Recovery:
    """Finds where a flow goes on, once what its sink has of the last batch in part is whole."""

    def __init__(self, job: Job, planner: Planner, checkpoint: Checkpoint, topics: ReadTopics) -> None:
        self._job, self._planner = job, planner
        self._checkpoint, self._topics = checkpoint, topics

    def is_needed(self, entries: tuple[Entry, ...]) -> bool:
        """Whether the ledger has batches that the checkpoint does not have, or the other way."""
        if not any(entry.batch for entry in entries):
            return False
        try:
            self._checkpoint.refuse_misfit(entries)
        except LedgerError:
            return True
        return self._checkpoint.id is None or self._is_ahead(entries)

    def _is_ahead(self, entries: tuple[Entry, ...]) -> bool:
        """Whether the checkpoint has finished batches that the sink, restored from a backup, lacks."""
        finished, own = self._checkpoint.last_committed(), self._checkpoint.id
        held = [entry.batch.number for entry in entries if entry.batch and entry.batch.checkpoint == own]
        return finished is not None and any(number < finished for number in held)

    def refuse_state(self, frame: DataFrame) -> None:
        """Refuse a flow whose state is lost with the checkpoint: it would go on with none, in silence."""
        if is_stateful(frame):
            raise FlowError(
                f"flow {self._job.label!r} keeps state, which was lost with its checkpoint "
                f"{self._checkpoint.path}",
                hint="bring the checkpoint back from a copy, or let the flow read its topics again with "
                f"`penstock run … --flow {self._job.flow.name} --begin-anew` and write a new target",
            )

    def settle(self, sink: Sink, entries: tuple[Entry, ...], before_commit: Settle) -> Offsets | None:
        """Let every lane write what it owes of the last batch, and return where that ends.

        What is left of a lost checkpoint goes first. It may be killed anywhere and be repeated: lanes that
        have written are skipped, and the new checkpoint is begun by the query that goes on.
        """
        batches = [entry.batch for entry in entries if entry.batch is not None]
        last = self._last(batches)
        self._topics.refuse_made_again(last.topics)
        self._refuse_before_cut(last)
        self._checkpoint.delete()
        self._topics.open()
        if self._job.cut is not None:
            self._checkpoint.write(PASSED, self._job.cut.mark)
        reach("flow.recovering", self._job.label)
        if any(entry.batch != last for entry in entries):
            self._write_again(sink, last, before_commit)
        return last.end

    def _write_again(self, sink: Sink, batch: Batch, before_commit: Settle) -> None:
        span = Span(batch.start, batch.end, as_table=True)
        frame = self._planner.rows(self._job.flow, self._job.label, span)
        sink.write(frame, batch, lambda run: before_commit(batch, observed_in(run)))

    def _refuse_before_cut(self, last: Batch) -> None:
        """Refuse a flow that has not come to where it was swapped in: it would repeat what is written."""
        cut = self._job.cut
        if cut is not None and not is_within(cut.position, last.end):
            identity = self._job.identity
            raise FlowError(
                f"flow {self._job.label!r} lost its checkpoint before it had come to where it was swapped in",
                hint="put the former version back: `penstock rollback "
                f"{identity.pipeline} {identity.flow}`; or bring the checkpoint back from a copy",
            )

    def _last(self, batches: list[Batch]) -> Batch:
        """The batch that all others came before; their numbers don't say, as a new checkpoint counts anew."""
        for each in batches:
            if all(each == other or each.follows(other) for other in batches):
                return each
        listed = " and ".join(str(each) for each in dict.fromkeys(map(str, batches)))
        raise LedgerError(
            f"the lanes of flow {self._job.label!r} do not fit together: they have written {listed}",
            hint="write a new target: the ledger was changed by hand, or is of two flows",
        )
