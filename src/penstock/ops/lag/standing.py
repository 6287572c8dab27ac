"""Where a group stands in a partition, beside what that partition keeps."""

from dataclasses import dataclass

from penstock.ops.lag.unread import Stand
from penstock.ops.model import PartitionRange
from penstock.ops.topic_statuses import Partition


@dataclass(frozen=True)
class Standing:
    """A position; `oldest` is the first offset that is not done with, where that is another.

    `every` is how many seconds its reader lets pass between commits, if it says. `archived` counts the
    offsets that Kafka has deleted unread and that its reader gets from an archive. One that `begins_anew` has
    read nothing of the topic: its position is one in a topic that had the same name before.
    """

    group: str
    partition: Partition
    position: int
    kept: PartitionRange
    oldest: int | None = None
    every: float | None = None
    has_members: bool = False
    archived: int = 0
    begins_anew: bool = False

    @property
    def is_behind(self) -> bool:
        return self.position < self.kept.end

    @property
    def stand(self) -> Stand:
        """Where its oldest unread event is."""
        at = self.position if self.oldest is None else self.oldest
        return self.partition, max(at, self.kept.first)

    @property
    def deleted(self) -> int:
        """How many offsets Kafka has deleted before they were read."""
        return max(0, self.kept.first - self.position)

    @property
    def lost(self) -> int:
        """How many offsets nobody has any more that were not read."""
        return self.deleted - self.archived
