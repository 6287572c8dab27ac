"""What is to be done: tasks of some keys, numbered within each key."""

from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.events import Event
from penstock.log import Producer, Topic
from penstock.settings import Settings

KEYS, EACH, PARTITIONS = 6, 50, 2
AT_ONCE = 6  # that a worker of the queue takes, and that a producer's batch has, which is never split
TASKS = KEYS * EACH


@dataclass(frozen=True)
class Task(Event):
    """Some work; the tasks of a key are to be done in the order of their numbers, if order matters."""

    key: str
    number: int
    at: datetime

    @property
    def effort(self) -> float:
        """How much longer than usual it takes: work is uneven."""
        return 0.4 + 0.3 * ((self.number * 7 + int(self.key) * 3) % 5)


def tasks(name: str) -> Topic[Task]:
    """The topic of the tasks."""
    return Topic(name, Task, key="key", partitions=PARTITIONS)


def send_all(topic: Topic[Task], settings: Settings) -> None:
    """Send all tasks, the keys by turns, in batches so small that a queue's workers share them."""
    with Producer(settings, linger="20 ms", kafka={"batch.num.messages": AT_ONCE}) as producer:
        for number in range(EACH):
            for key in range(KEYS):
                task = Task(f"{key}", number, datetime.now(UTC))
                producer.send(topic, task, partition=key % PARTITIONS)
