"""The read model of operations: everything that is known of a system at one moment.

Values only, no clients: status, metrics and the doctor are functions of a `System`.
"""

from dataclasses import dataclass
from typing import Literal

from penstock.archive.status import ArchiveStatus
from penstock.capture.status import CaptureStatus
from penstock.local import ServiceStatus
from penstock.log.groups import Member
from penstock.pipeline.flow_status import FlowStatus
from penstock.replica.status import ReplicaStatus

Judgement = Literal["ok", "warning", "stalled", "stopped", "rewind", "unknown"]


@dataclass(frozen=True)
class PartitionRange:
    """What a partition keeps: the first offset, the end, and the last stable offset (open transactions)."""

    first: int
    end: int
    stable: int | None = None

    @property
    def events(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class TopicStatus:
    """A topic: its partitions by number, its size, and how long it keeps events (None: for ever)."""

    name: str
    partitions: dict[int, PartitionRange]
    replication: int
    config: dict[str, str]
    bytes: int | None = None

    @property
    def events(self) -> int:
        return sum(each.events for each in self.partitions.values())

    @property
    def retention_seconds(self) -> float | None:
        given = int(self.config.get("retention.ms", "-1"))
        deletes = "delete" in self.config.get("cleanup.policy", "delete")
        return given / 1000 if deletes and given >= 0 else None

    @property
    def is_internal(self) -> bool:
        return self.name.startswith("_")


@dataclass(frozen=True)
class Commit:
    """A position that a group committed, and the end of the partition at about that time."""

    at: float
    position: int
    end: int

    @property
    def lag(self) -> int:
        return max(0, self.end - self.position)


@dataclass(frozen=True)
class PartitionLag:
    """How far a group is behind in a partition, judged over its last commits (the oldest first).

    `seconds` is the age of its oldest unread event, `left` the seconds until retention deletes that one.
    """

    topic: str
    partition: int
    position: int
    end: int
    seconds: float
    judgement: Judgement = "unknown"
    left: float | None = None
    commits: tuple[Commit, ...] = ()
    member: str | None = None
    lost: int = 0  # offsets that were deleted before the group had read them

    @property
    def events(self) -> int:
        return max(0, self.end - self.position)


@dataclass(frozen=True)
class GroupStatus:
    """A consumer group or a queue (Kafka's share group); its judgement is the worst of its partitions'."""

    group: str
    kind: Literal["consumer", "share"]
    state: str
    members: tuple[Member, ...] = ()
    lags: tuple[PartitionLag, ...] = ()
    judgement: Judgement = "unknown"
    returned: int | None = None  # records that came back to a queue in ten minutes, to be handed out again

    @property
    def events(self) -> int:
        return sum(each.events for each in self.lags)

    @property
    def seconds(self) -> float:
        return max((each.seconds for each in self.lags), default=0.0)


@dataclass(frozen=True)
class DeadLetterStatus:
    """The dead letters of a topic: how many wait for a redrive, the newest one's time and reason.

    `kept` are all that are there, redriven ones too; markers of transactions count among these.
    """

    topic: str
    source: str
    waiting: int
    newest: float | None = None
    reason: str = ""
    kept: int = 0


@dataclass(frozen=True)
class System:
    """Everything at the Unix time `at`; `unanswered` are questions that nobody answered, and why."""

    at: float
    services: tuple[ServiceStatus, ...] = ()
    topics: tuple[TopicStatus, ...] = ()
    groups: tuple[GroupStatus, ...] = ()
    flows: tuple[FlowStatus, ...] = ()
    captures: tuple[CaptureStatus, ...] = ()
    replicas: tuple[ReplicaStatus, ...] = ()
    archives: tuple[ArchiveStatus, ...] = ()
    dead_letters: tuple[DeadLetterStatus, ...] = ()
    unanswered: tuple[str, ...] = ()
