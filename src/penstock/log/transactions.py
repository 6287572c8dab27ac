"""Exactly once within the log: what is read and what is written commit together, or not at all."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Generic, TypeVar

from confluent_kafka import KafkaException

from penstock.durations import duration
from penstock.events import Event, new_id
from penstock.log.access import is_denied
from penstock.log.client import Configuration, explain
from penstock.log.consumer import Consumer, Rebalance
from penstock.log.dead_letters import DeadLetters
from penstock.log.message import Received
from penstock.log.positions import Position
from penstock.log.producer import Producer
from penstock.log.records import Batch, Record
from penstock.log.topic import Topic
from penstock.log.writer import Writer
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
O = TypeVar("O", bound=Event)  # noqa: E741


class Transaction(Generic[E]):
    """A batch that was read, and the way to write what follows from it."""

    def __init__(self, batch: Batch[E], producer: Producer) -> None:
        self._batch = batch
        self._producer = producer

    @property
    def events(self) -> list[E | None]:
        return self._batch.events

    def __len__(self) -> int:
        return len(self._batch)

    def __iter__(self) -> Iterator[Record[E]]:
        return iter(self._batch)

    def send(self, topic: Topic[O], event: O) -> None:
        """Send an event that becomes visible when the transaction commits."""
        self._producer.send(topic, event)


class ExactlyOnce(Consumer[E]):
    """Reads a topic and writes others in transactions.

        with ExactlyOnce(orders, settings, group="billing") as work:
            for transaction in work.transactions():
                for record in transaction:
                    transaction.send(invoices, invoice_for(record.event))

    The transaction commits when the loop goes on. If the body raises or the process dies, nothing of it is
    seen by readers of committed events, and its batch is read again.
    """

    def __init__(
        self,
        topic: Topic[E],
        settings: Settings,
        *,
        group: str,
        start: Position | None = None,
        member: str | None = None,
        timeout: str | timedelta = "1 minute",
        on_rebalance: Callable[[Rebalance], None] | None = None,
        schemas: SchemaDirectory | None = None,
        kafka: Configuration | None = None,
    ) -> None:
        self._writer = Writer(settings, f"{group}.{member or new_id()}", timeout, schemas)
        super().__init__(
            topic,
            settings,
            group=group,
            start=start,
            member=member,
            on_rebalance=on_rebalance,
            schemas=schemas,
            kafka=kafka,
        )
        self._settings = settings
        self._patience = duration(timeout).total_seconds()

    def transactions(
        self, size: int = 500, wait: str | timedelta = "1 second", *, idle: str | timedelta | None = None
    ) -> Iterator[Transaction[E]]:
        """Yield transactions of up to `size` events; each commits when the next one is asked for."""
        for messages in self._polls(size, wait, idle):
            # Taken now: it is out of date if the group gives the partitions to another member meanwhile.
            group = self._client.consumer_group_metadata()
            if not self._is_member():
                self._rewinds.read_again(messages)
                continue
            try:
                producer = self._writer.begin()
                self._dead = DeadLetters(self._settings, producer)
                yield Transaction(self._decode(messages), producer)
                self._commit_all(messages, group)
            except BaseException:
                self._undo()
                raise

    def commit(self) -> bool:
        """Positions are committed with the transaction, never by themselves."""
        return True

    def close(self) -> None:
        """Abort what is open and leave the group."""
        self._writer.abort()
        super().close()

    def _commit_all(self, messages: list[Received], group: object) -> None:
        """Commit; what the broker refuses, because the group has changed, is undone and read again."""
        done = {message.partition(): message.offset() + 1 for message in messages}
        try:
            self._writer.commit([self._identity.position(*each) for each in done.items()], group)
        except KafkaException as error:
            listener = self._writer.producer.listener
            self._undo()
            if error.args[0].fatal() or is_denied(error.args[0]):
                raise explain("commit a transaction", error.args[0], listener) from error

    def _undo(self) -> None:
        """Abort; before more is read, the outcome is settled and reading goes back to where the group is."""
        self._unsettled = True
        self._writer.abort()

    def _settled(self) -> dict[int, int]:
        self._writer.fence()
        return {each.partition: each.offset for each in self._places(self._client.assignment())}
