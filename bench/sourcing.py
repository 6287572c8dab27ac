"""Appends and loads of the event store, beside the package `eventsourcing` on the same PostgreSQL.

Both make an aggregate's events and store them as JSON, one event a transaction and many in one, with one
writer and with eight; each commit is on the disk before it returns. Each pair is measured in turns, three
times; the medians count.
"""

import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID, uuid4

from eventsourcing.application import Application
from eventsourcing.domain import Aggregate as PeerAggregate
from eventsourcing.domain import event
from psycopg.conninfo import conninfo_to_dict

from penstock.local import running
from penstock.settings import Settings
from penstock.sourcing import Aggregate, CommandHandler, DomainEvent, EventStore

SINGLES, BATCH, BATCHES, WRITERS, ROUNDS = 1_500, 500, 20, 8, 3
SHORT, LONG = 10, 100_000


@dataclass(frozen=True)
class Counted(DomainEvent):
    by: int


@dataclass(frozen=True)
class Count:
    total: int = 0


counter = Aggregate(
    "counter",
    Count(),
    lambda _, command: Counted(command.by),
    lambda state, event: Count(state.total + event.by),
    events=(Counted,),
)


class Counter(PeerAggregate):
    """The same in the other package."""

    def __init__(self) -> None:
        self.total = 0

    @event("Counted")
    def count(self, by: int) -> None:
        self.total += by


class Counters(Application[UUID]):
    snapshotting_intervals: ClassVar = {Counter: 1_000_000}


@dataclass(frozen=True)
class Sides:
    """What is measured, of both."""

    store: EventStore
    handler: CommandHandler[Count]
    peer: Counters


def main() -> None:
    with running(services=("postgres",)) as settings:
        sides = _sides(settings)
        print(f"medians of {ROUNDS} turns; appends of one event, and {BATCH} events in one\n")
        print("| | Penstock | eventsourcing | ratio |")
        print("|---|---:|---:|---:|")
        _compare("single appends/s, 1 writer", sides, _own_singles, _peer_singles, SINGLES)
        _compare(
            f"single appends/s, {WRITERS} writers",
            sides,
            lambda each: _together(lambda: _own_singles(each)),
            lambda each: _together(lambda: _peer_singles(each)),
            SINGLES * WRITERS,
        )
        _compare("batched events/s, 1 writer", sides, _own_batches, _peer_batches, BATCH * BATCHES)
        _loads(sides)
        sides.store.close()
        sides.peer.close()


def _sides(settings: Settings) -> Sides:
    store = EventStore("bench", settings, size=WRITERS + 1)
    store.create()
    found = conninfo_to_dict(settings.dsn().value)
    environment = {
        "PERSISTENCE_MODULE": "eventsourcing.postgres",
        "POSTGRES_DBNAME": found["dbname"],
        "POSTGRES_HOST": found["host"],
        "POSTGRES_PORT": str(found["port"]),
        "POSTGRES_USER": found["user"],
        "POSTGRES_PASSWORD": found["password"],
        "POSTGRES_POOL_SIZE": str(WRITERS + 1),
        "IS_SNAPSHOTTING_ENABLED": "y",
    }
    return Sides(store, CommandHandler(store, counter), Counters({**os.environ, **environment}))


def _compare(
    name: str, sides: Sides, own: Callable[[Sides], None], peer: Callable[[Sides], None], events: int
) -> None:
    times: dict[str, list[float]] = {"own": [], "peer": []}
    for _ in range(ROUNDS):
        times["own"].append(_timed(lambda: own(sides)))
        times["peer"].append(_timed(lambda: peer(sides)))
    ours, theirs = (events / statistics.median(each) for each in times.values())
    print(f"| {name} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.1f}× |")


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _together(work: Callable[[], None]) -> None:
    with ThreadPoolExecutor(WRITERS) as pool:
        for each in [pool.submit(work) for _ in range(WRITERS)]:
            each.result()


def _own_singles(sides: Sides) -> None:
    stream = str(uuid4())
    for version in range(SINGLES):
        sides.store.append(sides.handler.appending(stream, version, (Counted(1),)))


def _peer_singles(sides: Sides) -> None:
    made = Counter()
    made.count(0)
    sides.peer.save(made)
    for _ in range(SINGLES):
        made.count(1)
        sides.peer.save(made)


def _own_batches(sides: Sides) -> None:
    stream = str(uuid4())
    for number in range(BATCHES):
        events = tuple(Counted(1) for _ in range(BATCH))
        sides.store.append(sides.handler.appending(stream, number * BATCH, events))


def _peer_batches(sides: Sides) -> None:
    made = Counter()
    for _ in range(BATCHES):
        for _ in range(BATCH):
            made.count(1)
        sides.peer.save(made)


def _loads(sides: Sides) -> None:
    """An aggregate with a long history through its snapshot, beside one with a short one."""
    handler = sides.handler
    sides.store.append(handler.appending("short", 0, tuple(Counted(1) for _ in range(SHORT))))
    for first in range(0, LONG, 5_000):
        sides.store.append(handler.appending("long", first, tuple(Counted(1) for _ in range(5_000))))
    without = _timed(lambda: handler.load("long"))
    handler.keep("long", handler.load("long"))
    assert handler.load("long").state == Count(LONG)
    short, long = (
        statistics.median(_timed(lambda: handler.load(stream)) for _ in range(200))  # noqa: B023
        for stream in ("short", "long")
    )
    print(
        f"\nloading {SHORT} events {short * 1000:.2f} ms; {LONG:,} events {without * 1000:,.0f} ms, "
        f"through a snapshot {long * 1000:.2f} ms: {long / short:.2f}×"
    )
