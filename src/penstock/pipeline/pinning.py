"""A stream that ends at a given position: its batches are planned here instead of by Spark."""

from collections.abc import Mapping
from datetime import UTC, datetime

from penstock.errors import FlowError
from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint, is_within
from penstock.pipeline.job import Cut, Job

PATTERN = "pattern.txt"  # beside the checkpoint: the plan of a batch, where none may be left
PASSED = "cut.json"  # beside the checkpoint, once the results of another generation were passed over
_AT_MOST = 1_000_000  # offsets of a topic in a batch


class Pinning:
    """Plans the batches of a job from where it stands to a position, each to the offset.

    A batch that is planned is worked on as it is; if `strict`, one that goes beyond the position is refused.
    """

    def __init__(self, job: Job, checkpoint: Checkpoint, position: Offsets, *, strict: bool = False) -> None:
        self._job, self._checkpoint, self._strict = job, checkpoint, strict
        names = {topic.name for topic in job.topics}
        self._position = {topic: each for topic, each in position.items() if topic in names}

    def plan(self) -> bool:
        """Plan the next batch, unless one is planned; False if the position is reached."""
        planned, committed = self._checkpoint.last_planned(), self._checkpoint.last_committed()
        if planned is not None and self._strict:
            self._refuse_beyond(planned)
        if planned is not None and planned != committed:
            return True
        standing = self._checkpoint.position() or self._checkpoint.first_offsets()
        end = next_end(standing, self._position)
        if end is None:
            return False
        pattern = self._checkpoint.pattern() or self._checkpoint.read(PATTERN)
        if pattern is None:
            raise FlowError(
                f"flow {self._job.label!r} has not begun: there is no batch in {self._checkpoint.path}",
                hint="run it once, as it was run before",
            )
        self._checkpoint.pin(end, pattern)
        return True

    def _refuse_beyond(self, planned: int) -> None:
        ends = self._checkpoint.position(planned)
        end = {topic: each for topic, each in ends.items() if topic in self._position}
        if not is_within(end, self._position):
            raise FlowError(
                f"batch {planned} of flow {self._job.label!r} goes beyond where it was swapped in: a shadow "
                f"is still at work in {self._checkpoint.path}",
                hint="stop the shadow, and put the former version back: `penstock rollback "
                f"{self._job.identity.pipeline} {self._job.identity.flow}`",
            )


def has_passed(checkpoint: Checkpoint, cut: Cut) -> bool:
    """Whether a generation has worked up to a cut: before, nothing that it has computed was written."""
    return checkpoint.read(PASSED) == cut.mark


def next_end(standing: Offsets, position: Offsets, at_most: int = _AT_MOST) -> Offsets | None:
    """Return where a batch on the way to a position ends; None if nothing lies before it.

    >>> next_end({"a": {0: 5, 1: 9}}, {"a": {0: 8, 1: 7}})
    {'a': {0: 8, 1: 9}}
    >>> next_end({"a": {0: 8, 1: 9}}, {"a": {0: 8, 1: 7}}) is None
    True
    """
    if not any(_behind(standing.get(topic, {}), each) for topic, each in position.items()):
        return None
    return {
        topic: {
            partition: _step(standing.get(topic, {}).get(partition, 0), offset, at_most // len(each))
            for partition, offset in each.items()
        }
        for topic, each in position.items()
    }


def refuse_other_watermark(job: Job, cut: Cut, checkpoint: Checkpoint) -> None:
    """Refuse a flow whose windows were emitted as far as another watermark: some would double, or be lost."""
    reached = int(checkpoint.watermark().timestamp() * 1000)
    if reached and cut.watermark and reached != cut.watermark:
        raise FlowError(
            f"flow {job.label!r} emits windows up to {_moment(reached)}, the generation before it has "
            f"emitted those up to {_moment(cut.watermark)}: some would be emitted twice, or by none",
            hint="let both close their windows alike: run the one at work with `penstock run … --once`, and "
            "give the new version the same watermark; one that was swapped in already: `penstock rollback`",
        )


def _behind(standing: Mapping[int, int], position: Mapping[int, int]) -> bool:
    return any(standing.get(partition, 0) < offset for partition, offset in position.items())


def _step(standing: int, offset: int, at_most: int) -> int:
    return max(standing, min(offset, standing + max(at_most, 1)))


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
