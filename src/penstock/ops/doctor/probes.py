"""What the doctor looks at besides the system itself; values only, made by `probing`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.ops.doctor.topic_sample import TopicSample
from penstock.ops.model import System


@dataclass(frozen=True)
class Disk:
    """The file system of a folder."""

    folder: str
    total: int
    free: int

    @property
    def used(self) -> float:
        """The share that is used."""
        return 1 - self.free / self.total if self.total else 0.0


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that its producer has neither committed nor aborted; `timeout` is in seconds."""

    id: str
    started: float
    timeout: float
    partitions: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Held:
    """A partition whose readers of committed events stand at `stable`, whose record is of `since`."""

    topic: str
    partition: int
    stable: int
    end: int
    since: float


@dataclass(frozen=True)
class Rebalances:
    """How often a group was spread anew in so many seconds."""

    group: str
    count: int
    seconds: float
    last: float


@dataclass(frozen=True)
class Slot:
    """A replication slot of a database: `retained` bytes of its log are kept for it."""

    name: str
    connection: str
    active: bool
    status: str
    retained: int


@dataclass(frozen=True)
class Collections:
    """The garbage collections of a Java process: the share of its time, over so many seconds."""

    process: str
    share: float
    seconds: float


@dataclass(frozen=True)
class Difference:
    """Settings of a topic that are not as declared: `settings` maps a name to what it is and is to be."""

    topic: str
    action: str
    settings: Mapping[str, tuple[str | None, str]] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class DeclaredFlow:
    """What a module says of a flow; `clocks` are the places where its function asks for the present time."""

    label: str
    mode: str
    reads: tuple[str, ...]
    tables: tuple[str, ...]
    timeout: float
    interval: float
    clocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probes:
    """All of it; what is empty was not asked for, or nobody answered (`unanswered` says why)."""

    earlier: System | None = None
    samples: Mapping[str, TopicSample] = field(default_factory=dict)
    disks: tuple[Disk, ...] = ()
    transactions: tuple[OpenTransaction, ...] = ()
    held: tuple[Held, ...] = ()
    rebalances: tuple[Rebalances, ...] = ()
    slots: tuple[Slot, ...] = ()
    collections: tuple[Collections, ...] = ()
    differences: tuple[Difference, ...] = ()
    declared: tuple[DeclaredFlow, ...] = ()
    events: tuple[str, ...] = ()  # topics of events that are declared, tables and captured ones left out
    brokers: int = 1
    broker: Mapping[str, str] = field(default_factory=dict)
    clients: Mapping[str, str] = field(default_factory=dict)  # Kafka's settings that are no secrets
    cores: int = 0  # of this machine
    host: str = ""
    unanswered: tuple[str, ...] = ()
