"""Three members in one process, to be stopped, paused and killed: `python storm_worker.py broker topic`.

One reads exactly once and writes to `<topic>.out`, one at most once, one as a queue. The last two report on
stdout, with one write for each line, what they were given and what was confirmed.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event as Flag
from threading import Thread

from penstock.errors import LeaseError, PenstockError
from penstock.events import Event
from penstock.log import Consumer, ExactlyOnce, Queue, Topic
from penstock.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BATCH = 20
LIMIT = 9
QUICK = {"session.timeout.ms": 3000, "heartbeat.interval.ms": 500}


@dataclass(frozen=True)
class Step(Event):
    number: int
    at: datetime = NOW


def report(word: str, number: int) -> None:
    os.write(1, f"{word} {number}\n".encode())


def exactly_once(topic: Topic[Step], settings: Settings, stopped: Flag, member: str | None = None) -> None:
    out = Topic(topic.name + ".out", Step)
    with ExactlyOnce(
        topic, settings, group=topic.name + ".e", timeout="5 seconds", member=member, kafka=QUICK
    ) as worker:
        while not stopped.is_set():
            for transaction in worker.transactions(BATCH, "100 ms", idle="300 ms"):
                for record in transaction:
                    transaction.send(out, record.event)
                time.sleep(0.02)
                if stopped.is_set():
                    break


def at_most_once(topic: Topic[Step], settings: Settings, stopped: Flag) -> None:
    with Consumer(topic, settings, group=topic.name + ".m", delivery="at-most-once", kafka=QUICK) as consumer:
        while not stopped.is_set():
            for batch in consumer.batches(BATCH, "100 ms", idle="300 ms"):
                for event in batch.events:
                    report("given", event.number)
                time.sleep(0.02)
                if stopped.is_set():
                    break


def queue(topic: Topic[Step], settings: Settings, stopped: Flag) -> None:
    with Queue(topic, settings, group=topic.name + ".q", limit=LIMIT, lease="20 seconds") as jobs:
        while not stopped.is_set():
            for lease in jobs.take(idle="300 ms"):
                try:
                    report("trying", lease.event.number)
                    lease.acknowledge()
                    report("done", lease.event.number)
                except LeaseError:
                    report("late", lease.event.number)
                if stopped.is_set():
                    break


def kept_up(work: Callable[[], None], stopped: Flag) -> Iterator[None]:
    """Do the work again after an error that may pass, as a supervisor would."""
    while not stopped.is_set():
        try:
            work()
        except PenstockError as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            yield


def main(server: str, name: str, member: str | None = None) -> None:
    stopped = Flag()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    topic, settings = Topic(name, Step), Settings(kafka={"bootstrap.servers": server})
    jobs = (
        lambda: exactly_once(topic, settings, stopped, member),
        lambda: at_most_once(topic, settings, stopped),
        lambda: queue(topic, settings, stopped),
    )
    threads = [Thread(target=lambda job=job: list(kept_up(job, stopped))) for job in jobs]
    for thread in threads:
        thread.start()
    while not stopped.wait(0.2):
        pass  # a signal that another thread was given is heard only if this one does something
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
