"""A worker of the experiment, to be killed: it takes tasks from a queue, or reads them in a group."""

from contextlib import suppress

from penstock.errors import LeaseError
from penstock.lab.experiments.queue.task import AT_ONCE, Task, tasks
from penstock.lab.worked import Orders, report
from penstock.log import Consumer, Queue
from penstock.settings import Settings

_IDLE = "300 ms"
_LEASE = "15 seconds"
_SESSION_MS = 6_000  # after which the group gives a consumer up that is silent


def main() -> None:
    """Work on tasks until it is over, and report each that is begun and done."""
    orders = Orders()
    settings, topic, group = Settings.load(), tasks(orders["topic"]), orders["group"]
    if orders["kind"] == "queue":
        with Queue(topic, settings, group=group, lease=_LEASE, at_once=AT_ONCE) as queue:
            _from_queue(orders, queue)
    else:
        kafka = {"session.timeout.ms": _SESSION_MS, "heartbeat.interval.ms": 1_000}
        with Consumer(topic, settings, group=group, commit_every="500 ms", kafka=kafka) as consumer:
            _from_log(orders, consumer)


def _from_queue(orders: Orders, queue: Queue[Task]) -> None:
    while not orders.is_over:
        for lease in queue.take(idle=_IDLE):
            if not _work(orders, lease.event, lease.deliveries):
                break  # what was not acknowledged is released
            _report("done", lease.event)
            with suppress(LeaseError):  # somebody else does it again
                lease.acknowledge()


def _from_log(orders: Orders, consumer: Consumer[Task]) -> None:
    while not orders.is_over:
        for batch in consumer.batches(2, "5 ms", idle=_IDLE):
            for event in batch.events:
                if event is None or not _work(orders, event, 1):
                    break
                _report("done", event)
            if orders.is_over or "seek" in orders:
                break
        if orders.once("seek") is not None:
            for partition in consumer.assignment:
                consumer.seek(partition, 0)


def _work(orders: Orders, task: Task, deliveries: int) -> bool:
    """Take as long as work takes; whether it came to its end."""
    _report("begun", task, deliveries)
    return orders.rest(float(orders["work"]) / 1000 * task.effort)


def _report(word: str, task: Task, deliveries: int = 0) -> None:
    report(word=word, key=int(task.key), number=task.number, deliveries=deliveries)


if __name__ == "__main__":
    main()
