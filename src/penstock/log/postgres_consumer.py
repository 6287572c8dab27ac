"""Exactly once into an application's own PostgreSQL: its writes and the positions commit together."""

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Literal, TypeVar

import confluent_kafka
import psycopg
from confluent_kafka import TopicPartition

from penstock.durations import duration
from penstock.errors import ConfigurationError, FencedError, TryAgainError
from penstock.events import Event
from penstock.log.client import TIMEOUT, Configuration
from penstock.log.consumer import Consumer, Rebalance
from penstock.log.message import Received
from penstock.log.positions import Position
from penstock.log.records import Batch, Record
from penstock.log.stored_positions import Connection, StoredPositions
from penstock.log.topic import Topic, check_name
from penstock.points import reach
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
_log = logging.getLogger("penstock")


class PostgresConsumer(Consumer[E]):
    """Reads a topic and keeps its positions in your database, in the transaction of your writes.

        with (
            psycopg.connect(dsn, autocommit=True) as connection,
            PostgresConsumer(orders, settings, connection, group="billing") as consumer,
        ):
            for batch in consumer.batches():
                for record in batch:
                    connection.execute("INSERT INTO invoices …", [record.event.id])

    Each batch is a transaction of `connection`, which commits when the loop goes on. If the body raises or
    the process dies, neither its writes nor its position are there, and its batch is read again. Positions
    are in `penstock.positions`; where that has none of the group, `start` counts. `timeout` is how long to
    wait for another member's open transaction when its partitions come to this one.
    """

    def __init__(
        self,
        topic: Topic[E],
        settings: Settings,
        connection: Connection,
        *,
        group: str,
        start: Position | None = None,
        member: str | None = None,
        timeout: str | timedelta = "1 minute",
        on_rebalance: Callable[[Rebalance], None] | None = None,
        schemas: SchemaDirectory | None = None,
        kafka: Configuration | None = None,
    ) -> None:
        if not isinstance(connection, psycopg.Connection):
            raise ConfigurationError(
                f"connection= is a {type(connection).__name__}, expected one of psycopg's",
                hint="psycopg.connect(settings.dsn().value, autocommit=True)",
            )
        self._stored = StoredPositions(connection, check_name(group), topic.name, duration(timeout))
        self._stored.prepare()
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

    def records(self, *, idle: str | timedelta | None = None) -> Iterator[Record[E]]:
        """Yield record by record; those that were fetched together, up to 500, are one transaction."""
        for batch in self._transactions(500, None, idle):
            yield from batch

    def batches(
        self,
        size: int = 500,
        wait: str | timedelta = "1 second",
        *,
        idle: str | timedelta | None = None,
    ) -> Iterator[Batch[E]]:
        """Yield batches of up to `size` events, each in a transaction of its own."""
        return self._transactions(size, wait, idle)

    def _transactions(
        self, size: int, wait: str | timedelta | None, idle: str | timedelta | None
    ) -> Iterator[Batch[E]]:
        self._stored.refuse_open_transaction()
        for messages in self._polls(size, wait, idle):
            self._unsettled = True  # until it is known to be committed
            reach("consumer.postgres.collected", self.topic.name)
            try:
                yield from self._transaction(messages)
            except FencedError as error:  # before the body: whoever owns the batch reads it
                _log.warning("%s", error)
                continue
            self._unsettled = False
            reach("consumer.postgres.committed", self.topic.name)
            self._finish(messages)  # in Kafka too, for those who look at the lag

    def _transaction(self, messages: list[Received]) -> Iterator[Batch[E]]:
        ends = {message.partition(): message.offset() + 1 for message in messages}
        with self._stored.moving(ends):
            reach("consumer.postgres.moved", self.topic.name)
            batch = self._decode(messages)
            if batch:
                yield batch
            self._dead.flush()
            reach("consumer.postgres.written", self.topic.name)

    @property
    def _begin_anew(self) -> str:
        return self._stored.forget

    def _way_on(self, partition: int) -> str:
        first, _ = self._client.get_watermark_offsets(TopicPartition(self.topic.name, partition), TIMEOUT)
        return f"go on with what is left: {self._stored.skip(partition, first)}"

    def _places(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Where the group stands; what is not to be had yet is claimed again before anything is read."""
        try:
            return self._claimed(partitions)
        except TryAgainError as error:
            _log.warning("%s", error)
            self._unsettled = True
            return self._start.resolve(self._client, partitions)

    def _claimed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Where the database says that the group stands: Kafka's own positions only show the lag."""
        if not partitions:
            return []
        places = self._stored.claim(self._start.resolve(self._client, partitions), self._identity.id)
        reach("consumer.postgres.claimed", self.topic.name)
        for each in places:
            self._identity.refuse_foreign(each)
        return places

    def _part_with(
        self,
        client: confluent_kafka.Consumer,
        partitions: list[TopicPartition],
        kind: Literal["revoked", "lost"],
    ) -> None:
        self._stored.release(each.partition for each in partitions)
        super()._part_with(client, partitions, kind)

    def _settled(self) -> dict[int, int]:
        """The positions of this member's partitions; a claim that came too late for the group is undone."""
        assigned = self._client.assignment()
        owned = self._stored.owned(each.partition for each in assigned)
        taken = [each for each in assigned if each.partition not in owned]
        if taken and self._is_current(taken):
            owned.update({each.partition: each.offset for each in self._claimed(taken)})
        return owned

    def _is_current(self, partitions: list[TopicPartition]) -> bool:
        """Whether the group still gives this member its partitions: only then does it take a commit.

        What it knows is committed again. If it refuses, the next poll brings what has become of them.
        """
        if not self._is_member():
            return False
        known = self._committed(partitions)
        again = [
            TopicPartition(each.topic, each.partition, max(each.offset, 0), each.metadata or "")
            for each in known
        ]
        return self._commit(again)
