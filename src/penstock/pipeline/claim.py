"""A runner's claim to a flow: it may write until somebody else takes over, or another version is in place."""

from functools import cached_property

from penstock.log.ledger import Entry
from penstock.pipeline.generation import Generations
from penstock.pipeline.job import Job
from penstock.pipeline.plan import Planner
from penstock.targets.sink import Sink


class Claim:
    """Opens the sink of a job, one try after the other.

    Between two tries nobody else may have become the writer: the later one would shut out its successor.
    """

    def __init__(self, job: Job, planner: Planner) -> None:
        self._job, self._planner = job, planner
        self._left: tuple[Entry, ...] = ()  # by the last opening

    def refuse_replaced(self) -> None:
        """Refuse a generation that is not at work any more, or not in the shadow of the one that is."""
        if self._job.rebuilds:
            self._generations.refuse_discarded(self._job.identity)
        else:
            self._generations.refuse_former(self._job.identity)

    def take(self, sink: Sink) -> tuple[Entry, ...]:
        """Open the sink; a swap that has begun meanwhile finds it opened, or is found here."""
        for entry, left in zip(sink.entries(), self._left, strict=False):
            entry.refuse_older(left.epoch, sink.id)
        self._left = ()  # an opening that breaks off may have left an epoch of its own
        self._left = sink.open()
        self.refuse_replaced()
        return self._left

    def forget(self) -> None:
        """Let the generation begin anew: no other one has written a part of its results."""
        known = self._generations.read()
        if known != known.begun_anew():
            self._generations.write(known.begun_anew(), known)

    @cached_property
    def _generations(self) -> Generations:
        return Generations(self._planner.spark, self._planner.settings, self._job.identity)
