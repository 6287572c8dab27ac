"""A plan: what a load needs by measured costs, beside what the textbook says."""

from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from penstock.errors import SettingsError
from penstock.ops.capacity.costs import (
    COSTS,
    EVENT,
    MEMORY,
    PRODUCE,
    STATE_DISK,
    STATE_MEMORY,
    TEXTBOOK,
    Work,
)

_MIB = 2**20


@dataclass(frozen=True)
class Load:
    """Events a second of so many bytes, for how long they are kept, and what flows do with them.

    `headroom` is how much faster flows are to be than events come, so that they catch up after a pause.
    """

    rate: float
    size: float
    retention: timedelta
    work: Work = "filter"
    keys: float = 0
    flows: int = 1
    replication: int = 3
    headroom: float = 2.0

    def __post_init__(self) -> None:
        for name in ("rate", "size", "flows", "replication"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"{name} is {getattr(self, name)}, expected more than 0")
        if self.headroom < 1:
            raise SettingsError(f"headroom is {self.headroom}, expected at least 1: flows would fall behind")
        if self.keys < 0:
            raise SettingsError(f"keys is {self.keys}, expected 0 or more")

    @property
    def bytes_a_second(self) -> float:
        return self.rate * self.size


@dataclass(frozen=True)
class Need:
    """What a load needs; bytes are bytes."""

    partitions: int
    textbook_partitions: int
    textbook: str
    cores: int
    memory: float
    disk: float
    state_disk: float
    broker_in: float
    broker_out: float
    producers: int
    catches_up: timedelta
    assumptions: tuple[str, ...]


def needed(load: Load) -> Need:
    """Return what a load needs.

    >>> need = needed(Load(rate=500_000, size=200, retention=timedelta(days=7), replication=3))
    >>> need.cores, need.partitions, need.textbook_partitions
    (23, 23, 23)
    >>> f"{need.disk / 1e12:.0f} TB"
    '181 TB'

    A partition is one task, and a task one core: there are as many partitions as a flow needs cores.
    """
    of_one = ceil(load.rate * load.headroom / events_a_core(load))
    cores = of_one * load.flows
    kept = load.bytes_a_second * load.retention.total_seconds() * load.replication
    return Need(
        partitions=of_one,
        textbook_partitions=textbook_partitions(load, consumers=of_one),
        textbook=f"{load.bytes_a_second / 1e6:,.0f} MB/s by {TEXTBOOK / 1e6:.0f} MB/s is "
        f"{textbook_partitions(load, consumers=1):,}, and no fewer than {of_one:,} consumers",
        cores=cores,
        memory=load.flows * (MEMORY.figure * max(1, of_one / 2) + load.keys * STATE_MEMORY.figure),
        disk=kept,
        state_disk=load.flows * load.keys * STATE_DISK.figure,
        broker_in=load.bytes_a_second * load.replication,
        broker_out=load.bytes_a_second * (load.replication - 1 + load.flows),
        producers=ceil(load.rate / PRODUCE.figure),
        catches_up=_catching_up(load, of_one),
        assumptions=_assumptions(load),
    )


def events_a_core(load: Load) -> float:
    """Return how many events a second a core does; larger ones take longer in proportion.

    >>> events_a_core(Load(1, 200, timedelta(1))), events_a_core(Load(1, 400, timedelta(1)))
    (44719.0, 22359.5)
    """
    return COSTS[load.work].per_core / max(1.0, load.size / EVENT)


def textbook_partitions(load: Load, consumers: int) -> int:
    """Return what is commonly taught: throughput by 10 MB/s, and no fewer than there are consumers.

    >>> textbook_partitions(Load(500_000, 200, timedelta(days=7)), consumers=4)
    10
    """
    return max(ceil(load.bytes_a_second / TEXTBOOK), consumers)


def _catching_up(load: Load, cores: int) -> timedelta:
    """How long it takes to catch up on an hour in which nothing was read."""
    spare = cores * events_a_core(load) - load.rate
    return timedelta(hours=1) * (load.rate / spare) if spare > 0 else timedelta.max


def _assumptions(load: Load) -> tuple[str, ...]:
    cost = COSTS[load.work]
    return (
        f"a core does {events_a_core(load):,.0f} events/s: {cost.of}, {cost.figure:,.0f}/s on 2 cores with "
        f"the broker beside it (bench {cost.benchmark})",
        f"events of more than {EVENT} bytes cost in proportion; smaller ones cost as much",
        f"cores are {load.headroom:g} times what the rate needs, to catch up after a pause",
        "memory is 1.9 GiB for each two cores (bench backlog)"
        + (f", and {STATE_MEMORY.figure:.0f} bytes for each key (bench state)" if load.keys else ""),
        f"{load.replication} copies of every event on the brokers' disks, without compression",
        "every flow reads every event once; brokers have cores of their own",
        "rates grow with the cores: measured on two, not on a cluster",
    )


def mebibytes(value: float) -> str:
    """Spell an amount of bytes.

    >>> mebibytes(3 * 2**20), mebibytes(5.5 * 2**30), mebibytes(200e12)
    ('3 MiB', '5.5 GiB', '182 TiB')
    """
    for unit, size in (("TiB", 2**40), ("GiB", 2**30)):
        if value >= size:
            amount = value / size
            return f"{amount:,.0f} {unit}" if amount >= 100 else f"{amount:,.1f} {unit}"
    return f"{value / _MIB:,.0f} MiB"
