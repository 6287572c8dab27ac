"""A writer that reads: what it sends and the positions it has read commit together, or not at all."""

from datetime import timedelta
from functools import partial

from confluent_kafka import KafkaException, TopicPartition

from penstock.errors import DeliveryError, LogError
from penstock.log.access import is_denied
from penstock.log.client import TIMEOUT, asking, explain
from penstock.log.producer import Failure, Producer
from penstock.log.transactional_producer import TransactionalProducer
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings


class Writer:
    """Commits what was sent together with the positions that were read, in transactions one after another."""

    def __init__(
        self,
        settings: Settings,
        id: str,
        timeout: str | timedelta = "1 minute",
        schemas: SchemaDirectory | None = None,
    ) -> None:
        self._make = partial(TransactionalProducer, settings, id, timeout, schemas=schemas)
        self._made: TransactionalProducer | None = None  # thrown away after a failed transaction
        self.is_fenced = False  # whether another writer of this id has taken over, as far as was noticed

    @property
    def producer(self) -> Producer:
        """The producer of the open transaction."""
        return self._opened.producer

    @property
    def _opened(self) -> TransactionalProducer:
        if self._made is None or not self._made.is_open:
            raise LogError("no transaction is open")
        return self._made

    def fence(self) -> TransactionalProducer:
        """End what an earlier writer of this id left open: only then is it known which positions count."""
        if self._made is None:
            made = self._make()
            with asking(f"begin a transaction of {made.id!r}", made.listener):
                made.open()
            self._made = made  # only now: one that was denied its id is of no use later
        return self._made

    def begin(self) -> Producer:
        """Open a transaction."""
        made = self.fence()
        with asking("begin a transaction", made.listener):
            made.begin()
        return made.producer

    def commit(self, positions: list[TopicPartition], group: object) -> None:
        """Commit what was sent together with the positions that were read."""
        made = self._opened
        try:
            made.producer.flush()
        except DeliveryError as failed:
            self._raise_denial(failed, positions, group)
            raise
        made.client.send_offsets_to_transaction(positions, group, TIMEOUT)
        made.commit()

    def _raise_denial(self, failed: DeliveryError, positions: list[TopicPartition], group: object) -> None:
        """A broken transaction has its events purged; why it is broken, it says when it is asked to go on."""
        producer = self.producer
        topics = {each.topic for each in failed.failures if isinstance(each, Failure)}
        what = f"write to {', '.join(sorted(topics))}"
        if known := producer.refusal(what):
            raise known from failed
        try:
            producer.client.send_offsets_to_transaction(positions, group, TIMEOUT)
        except KafkaException as error:
            if is_denied(error.args[0]):
                raise explain(what, error.args[0], producer.listener) from error

    def abort(self) -> None:
        """Undo what was sent since `begin`."""
        if self._made is None or not self._made.is_open:
            return
        try:
            self.is_fenced = not self._made.abort()
        finally:
            self._made = None
