"""A member of the group: a consumer in a thread, which handles so many events a second."""

import threading
import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, TopicPartition

from penstock.lab.experiments.partitions.rebalances import Rebalances
from penstock.lab.run import Run

_POLL = 0.05
_LEFT = 15.0
STRATEGIES = {"all at once (range)": "range", "one by one (cooperative)": "cooperative-sticky"}


class Member:
    """Joins the group when it is made; `leave` lets it commit and go, and waits for that."""

    def __init__(self, run: Run, number: int, topic: str, group: str, rebalances: Rebalances) -> None:
        self.number, self.handled = number, 0
        self._run, self._topic, self._group, self._rebalances = run, topic, group, rebalances
        self.positions: dict[int, int] = {}
        self.failure: BaseException | None = None
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"lab-member-{number}", daemon=True)
        self._thread.start()

    def ask_to_leave(self) -> None:
        """Let it leave in its own time."""
        self._left.set()

    def leave(self) -> None:
        """Let it leave, and wait."""
        self._left.set()
        self._thread.join(_LEFT)

    @property
    def is_gone(self) -> bool:
        return not self._thread.is_alive()

    def _work(self) -> None:
        strategy = STRATEGIES[self._run.value("strategy")]
        consumer = Consumer(
            self._run.settings.client()
            | {
                "group.id": self._group,
                "client.id": f"consumer-{self.number}",
                "partition.assignment.strategy": strategy,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 300,
                "log_level": 0,
            }
        )
        try:
            consumer.subscribe(
                [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
            )
            self._consume(consumer)
        except BaseException as error:  # raised again by the experiment
            self.failure = error
        finally:
            consumer.close()
            self._rebalances.revoked(self.number, list(self.positions))

    def _consume(self, consumer: Consumer) -> None:
        due = time.monotonic()
        while not self._left.is_set():
            message = consumer.poll(_POLL)
            if message is None or message.error() is not None:
                continue
            partition, offset = message.partition(), message.offset()
            if partition is None or offset is None:
                continue
            self.positions[partition] = offset + 1
            self.handled += 1
            self._run.flow([{"out": partition, "to": self.number}])
            due = max(due, time.monotonic()) + 1 / self._run.value("speed")
            self._left.wait(max(0.0, due - time.monotonic()))

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        if self.number == 1:
            self._rebalances.counted()
        self._rebalances.assigned(self.number, [each.partition for each in partitions])

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """What was handled is committed before somebody else goes on."""
        with suppress(KafkaException):  # there was nothing to commit, or it is not this member's any more
            consumer.commit(asynchronous=False)
        self._rebalances.revoked(self.number, [each.partition for each in partitions])
        for each in partitions:
            self.positions.pop(each.partition, None)
