"""The same work from a log and from a queue, with a worker killed in each: the table of docs/queues.md."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from penstock.events import Event
from penstock.local import running
from penstock.log import Broker, Consumer, Producer, Queue, Topic, apply
from penstock.settings import Settings

EVENTS, KEYS, PARTITIONS, WORKERS = 6_000, 60, 6, 12
WORK = 0.01
SESSION = "10 s"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Task(Event):
    key: str
    number: int
    at: datetime = NOW


@dataclass(frozen=True)
class Line:
    """What a worker reported: it started or ended an event, and when."""

    worker: int
    word: str
    number: int
    at: float


def main() -> None:
    print(
        f"{EVENTS:,} events of {KEYS} keys, {WORK * 1000:.0f} ms of work each; the busiest worker is killed"
    )
    print(f"when a third is done, and not replaced; session timeout {SESSION} in both\n")
    with running(services=("kafka",)) as settings:
        sides = [_run(settings, kind) for kind in ("log", "queue")]
    print("| | log (`Consumer`) | queue (`Queue`) |")
    print("|---|---:|---:|")
    for row in sides[0]:
        print(f"| {row} | {sides[0][row]} | {sides[1][row]} |")


def _run(settings: Settings, kind: str) -> dict[str, str]:
    topic = _topic(f"bench.{kind}")
    apply([topic], Broker(settings))
    with Producer(settings, kafka={"batch.num.messages": 10}) as producer:
        producer.send_all(topic, (Task(f"k{number % KEYS}", number) for number in range(EVENTS)))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{number}.txt" for number in range(WORKERS)]
        command = [sys.executable, "-m", "bench.queues", kind, settings.client()["bootstrap.servers"]]
        workers = [_start(command, file) for file in files]
        try:
            killed, at = _kill_one(workers, files)
            _wait(lambda: len(_ended(files)) == EVENTS)
        finally:
            for worker in workers:
                worker.terminate()
                worker.wait()
        return _rows(_lines(files), killed, at) | {
            "handed out again on request": _again(settings, topic, kind)
        }


def _topic(name: str) -> Topic[Task]:
    return Topic(name, Task, key="key", partitions=PARTITIONS)


def _start(command: list[str], file: Path) -> "subprocess.Popen[bytes]":
    with file.open("wb") as reported:
        return subprocess.Popen(command, stdout=reported)


def _kill_one(workers: list["subprocess.Popen[bytes]"], files: list[Path]) -> tuple[int, float]:
    _wait(lambda: len(_ended(files)) > EVENTS / 3)
    busiest = Counter(line.worker for line in _lines(files)).most_common(1)[0][0]
    workers[busiest].kill()
    return busiest, time.monotonic()


def _rows(lines: list[Line], killed: int, at: float) -> dict[str, str]:
    starts = [line for line in lines if line.word == "start"]
    times = Counter(line.number for line in starts)
    busy = {line.worker for line in starts}
    last = max((line for line in starts if line.worker == killed), key=lambda line: line.at).number
    again = [line.at - at for line in starts if line.number == last and line.worker != killed]
    took = max(line.at for line in lines) - min(line.at for line in lines)
    return {
        "workers on partitions": f"{WORKERS} on {PARTITIONS}",
        "workers that got work": str(len(busy)),
        "events done": f"{len({line.number for line in lines if line.word == 'end'}):,}",
        "seconds for all of them": f"{took:.1f}",
        "events started twice": str(sum(count > 1 for count in times.values())),
        "the killed worker's event was taken over after": f"{min(again):.2f} s" if again else "it held none",
        "keys worked on in order": f"{_ordered(starts)} of {KEYS}",
    }


def _ordered(starts: list[Line]) -> int:
    """Count the keys whose events were first started in the order of the log."""
    seen: dict[int, list[int]] = defaultdict(list)
    for line in sorted(starts, key=lambda line: line.at):
        numbers = seen[line.number % KEYS]
        if line.number not in numbers:
            numbers.append(line.number)
    return sum(numbers == sorted(numbers) for numbers in seen.values())


def _again(settings: Settings, topic: Topic[Task], kind: str) -> str:
    if kind == "log":
        with Consumer(topic, settings) as consumer:
            return f"{sum(1 for _ in consumer.records(idle='2 seconds')):,}"
    with Queue(topic, settings, group=topic.name) as queue:
        return f"{sum(1 for _ in queue.take(idle='2 seconds')):,}"


def _lines(files: list[Path]) -> list[Line]:
    found = []
    for worker, file in enumerate(files):
        for line in file.read_text().split("\n")[:-1]:
            word, number, at = line.split()
            found.append(Line(worker, word, int(number), float(at)))
    return found


def _ended(files: list[Path]) -> set[int]:
    return {line.number for line in _lines(files) if line.word == "end"}


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not done():
        if time.monotonic() > deadline:
            sys.exit("the workers did not get on with it in 3 minutes")
        time.sleep(0.2)


def work_on(kind: str, server: str) -> None:
    """Be a worker until asked to stop."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    settings = Settings(kafka={"bootstrap.servers": server})
    topic = _topic(f"bench.{kind}")
    take = _from_log if kind == "log" else _from_queue
    take(topic, settings, stopping)


def _from_log(topic: Topic[Task], settings: Settings, stopping: threading.Event) -> None:
    with Consumer(topic, settings, group=topic.name, kafka={"session.timeout.ms": 10_000}) as consumer:
        while not stopping.is_set():
            for record in consumer.records(idle="500 ms"):
                _work(record.event)


def _from_queue(topic: Topic[Task], settings: Settings, stopping: threading.Event) -> None:
    with Queue(topic, settings, group=topic.name) as queue:
        while not stopping.is_set():
            for lease in queue.take(idle="500 ms"):
                _work(lease.event)
                lease.acknowledge()


def _work(task: Task | None) -> None:
    if task is not None:
        os.write(1, f"start {task.number} {time.monotonic()}\n".encode())
        time.sleep(WORK)
        os.write(1, f"end {task.number} {time.monotonic()}\n".encode())


if __name__ == "__main__":
    work_on(*sys.argv[1:])
