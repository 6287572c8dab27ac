"""Capture beside the real Debezium: a backlog of changes, a snapshot, and from commit to reader."""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import msgspec
import psutil
import psycopg
from tests.capture.process import CaptureProcess
from tests.connect.debezium import Debezium

from penstock.capture import Capture, Store
from penstock.errors import PenstockError
from penstock.local import running
from penstock.log import Broker
from penstock.settings import Settings, reveal

CHANGES, ROWS, PER_SECOND, SECONDS = 1_000_000, 1_000_000, 1000, 20
_TABLE = """
create table public.{} (id bigint primary key, customer int, name text, price numeric(12, 2),
    at timestamptz, status text, quantity int, note text)
"""
_ROWS = """
insert into public.{} select i, i % 1000, 'name ' || i, i * 0.01, now(), 'new', i % 10, 'some note'
from generate_series({}, {}) i
"""
_TUNED = {"poll.interval.ms": "10", "max.batch.size": "8192", "max.queue.size": "32768"}
Start = Callable[[], "psutil.Process"]


@dataclass(frozen=True)
class Speed:
    """Records in a second, and for each second of the capturing process's CPU."""

    rate: float
    per_cpu: float

    def __str__(self) -> str:
        return f"{self.rate:>9,.0f}/s  {self.per_cpu:>9,.0f} per CPU second"


class Ours:
    name = "penstock"

    def __init__(self, settings: Settings, table: str, folder: Path) -> None:
        self._settings = settings
        capture = Capture(f"p_{table}", tables=(f"public.{table}",))
        Store(settings).put(capture)
        self.topic = capture.topic(f"public.{table}")
        self._process = CaptureProcess(settings, capture.name, folder)
        self._capture = capture

    def start(self) -> psutil.Process:
        self._process.start()
        return psutil.Process(self._process.pid)

    def await_stream(self) -> None:
        while (found := Store(self._settings).position(self._capture.name)) is None or found.pending:
            time.sleep(0.1)
        time.sleep(1)

    def stop(self) -> None:
        self._process.stop()


class Theirs:
    name = "debezium"

    def __init__(self, settings: Settings, table: str, folder: Path) -> None:  # noqa: ARG002
        config = {"topic.prefix": f"d_{table}", "table.include.list": f"public.{table}"} | _TUNED
        modes = {"decimal.handling.mode": "string", "interval.handling.mode": "string"}
        self.topic = f"d_{table}.public.{table}"
        self._debezium = Debezium(settings, config | modes, exactly_once=True, java=("-Xmx1g",))

    def start(self) -> psutil.Process:
        self._debezium.start()
        return psutil.Process(self._debezium.pid)

    def await_stream(self) -> None:
        time.sleep(2)

    def stop(self) -> None:
        self._debezium.stop()


def main() -> None:
    print("capture: the same table, PostgreSQL and broker; both exactly once; one at a time")
    with running() as settings, tempfile.TemporaryDirectory() as folder:
        database = psycopg.connect(reveal(settings.dsn()), autocommit=True)
        _compare("backlog of changes", lambda side: _backlog(settings, database, side, Path(folder)))
        _compare("snapshot of rows", lambda side: _snapshot(settings, database, side, Path(folder)))
        for side in (Ours, Theirs):
            found = _latency(settings, database, side, Path(folder))
            print(f"  commit to reader, {PER_SECOND}/s  {side.name:9} {found}")
    print()


def _compare(what: str, measure: Callable[[type], Speed]) -> None:
    speeds = {side.name: measure(side) for side in (Ours, Theirs)}
    for name, speed in speeds.items():
        print(f"  {what:20} {name:9} {speed}", flush=True)
    print(f"  {what:20} ratio     {speeds['penstock'].rate / speeds['debezium'].rate:9.2f}", flush=True)


def _backlog(settings: Settings, database: psycopg.Connection, side: type, folder: Path) -> Speed:
    """A slot is there, the changes come while nobody reads: half inserts, half updates, 1,000 in one."""
    table = f"backlog_{side.name}"
    database.execute(_TABLE.format(table))
    capture = side(settings, table, folder)
    capture.start()
    capture.await_stream()
    database.execute(_ROWS.format(table, 0, 0))  # Debezium remembers no place in a table without rows
    _when(Broker(settings), capture.topic, 1)
    time.sleep(3)
    capture.stop()
    for start in range(0, CHANGES // 2, 1000):
        database.execute(_ROWS.format(table, start + 1, start + 1000))
        database.execute(
            f"update public.{table} set status = 'paid' where id > {start} and id <= {start + 1000}"
        )
    return _measured(settings, capture, CHANGES)


def _snapshot(settings: Settings, database: psycopg.Connection, side: type, folder: Path) -> Speed:
    table = f"snapshot_{side.name}"
    database.execute(_TABLE.format(table))
    database.execute(_ROWS.format(table, 1, ROWS))
    database.execute(f"analyze public.{table}")
    return _measured(settings, side(settings, table, folder), ROWS)


def _measured(settings: Settings, capture: "Ours | Theirs", count: int) -> Speed:
    """From the first twentieth of the records to the last one, so that starting up does not count."""
    broker = Broker(settings)
    starting = threading.Thread(target=capture.start)
    starting.start()
    first = count // 20
    began = _when(broker, capture.topic, first)
    process = _process_of(capture)
    cpu = _cpu(process)
    ended = _when(broker, capture.topic, count)
    spent = _cpu(process) - cpu
    starting.join()
    capture.stop()
    return Speed((count - first) / (ended - began), (count - first) / spent)


def _process_of(capture: "Ours | Theirs") -> psutil.Process:
    pid = capture._process.pid if isinstance(capture, Ours) else capture._debezium.pid
    return psutil.Process(pid)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _when(broker: Broker, topic: str, count: int) -> float:
    """Return when a topic had so many records; its offsets count the marks of transactions, too."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        try:
            if sum(broker.committed_end(topic).values()) >= count:
                return time.monotonic()
        except PenstockError:
            pass  # it is not there yet
        time.sleep(0.05)
    raise TimeoutError(f"{topic} has not got {count} records in ten minutes")


def _latency(settings: Settings, database: psycopg.Connection, side: type, folder: Path) -> str:
    """Transactions of one row at a fixed rate; a reader compares its clock with the time of the commit."""
    table = f"latency_{side.name}"
    database.execute(_TABLE.format(table))
    capture = side(settings, table, folder)
    capture.start()
    capture.await_stream()
    seen: list[float] = []
    with _reading(settings, capture.topic, seen):
        begun = time.monotonic()
        for number in range(PER_SECOND * SECONDS):
            database.execute(_ROWS.format(table, number + 1, number + 1))
            if (early := begun + number / PER_SECOND - time.monotonic()) > 0:
                time.sleep(early)
        rate = PER_SECOND * SECONDS / (time.monotonic() - begun)
        time.sleep(2)
    capture.stop()
    cuts = statistics.quantiles(seen[len(seen) // 10 :], n=100)
    return f"p50 {cuts[49]:6.1f} ms  p99 {cuts[98]:6.1f} ms  of {len(seen):,} at {rate:,.0f}/s"


@contextmanager
def _reading(settings: Settings, topic: str, seen: list[float]) -> Iterator[None]:
    stopped = threading.Event()
    reader = threading.Thread(target=_read, args=(settings, topic, seen, stopped))
    reader.start()
    time.sleep(2)
    try:
        yield
    finally:
        stopped.set()
        reader.join()


def _read(settings: Settings, topic: str, seen: list[float], stopped: threading.Event) -> None:
    more = {
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 5,
        "fetch.queue.backoff.ms": 5,
    }
    consumer = confluent_kafka.Consumer(settings.client() | more)
    consumer.subscribe([topic])
    while not stopped.is_set():
        for message in consumer.consume(100, 0.01):
            if message.error() is None and message.value() is not None:
                committed = msgspec.json.decode(message.value())["source"]["ts_us"]
                seen.append(time.time() * 1000 - committed / 1000)
    consumer.close()
