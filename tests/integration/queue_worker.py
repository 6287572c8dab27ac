"""A worker of a queue as a process of its own, to be killed: `python queue_worker.py broker topic`.

Reports on stdout, with one write for each line, what it is about to acknowledge and what was confirmed.
"""

import os
import signal
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.errors import LeaseError
from penstock.events import Event
from penstock.log import Lease, Queue, Topic
from penstock.settings import Settings

LIMIT = 5
NOW = datetime(2026, 1, 1, tzinfo=UTC)
FATAL = 1007  # whoever touches it dies


@dataclass(frozen=True)
class Job(Event):
    number: int
    at: datetime = NOW

    @property
    def refused(self) -> bool:
        """Poisoned in a way that the work can see."""
        return self.number % 40 == 0

    @property
    def failing(self) -> bool:
        """Poisoned in a way that looks like bad luck every time."""
        return self.number % 40 == 20


def report(word: str, number: int) -> None:
    os.write(1, f"{word} {number}\n".encode())


def work(lease: Lease[Job]) -> None:
    job = lease.event
    if job.number == FATAL:
        os.kill(os.getpid(), signal.SIGKILL)
    if job.refused:
        lease.reject("refused")
    elif job.failing:
        lease.release("failing")
    else:
        report("trying", job.number)
        lease.acknowledge()
        report("done", job.number)


def main(server: str, topic: str) -> None:
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    settings = Settings(kafka={"bootstrap.servers": server})
    with Queue(Topic(topic, Job), settings, group=topic, limit=LIMIT, lease="20 seconds") as queue:
        while not stopping.is_set():
            for lease in queue.take(idle="500 ms"):
                try:
                    work(lease)
                except LeaseError:
                    report("late", lease.event.number)


if __name__ == "__main__":
    main(*sys.argv[1:])
