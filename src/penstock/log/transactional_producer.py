"""A producer of transactions, and the rules that everybody who writes in transactions has to follow."""

from datetime import timedelta

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException

from penstock.durations import duration
from penstock.errors import InternalError
from penstock.log.client import TIMEOUT, Configuration, ErrorListener, undisguised
from penstock.log.producer import Producer
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


class TransactionalProducer:
    """Opening it ends what an earlier one of its id left open, and shuts that one out.

    After any failure it is to be thrown away: librdkafka may let a late request of a transaction that failed
    join the next one. A new producer of the same id fences it. Errors are raised as the client has them, for
    the one who writes to explain.
    """

    def __init__(
        self,
        settings: Settings,
        id: str,
        timeout: str | timedelta,
        *,
        linger: str | timedelta = "5 ms",
        schemas: SchemaDirectory | None = None,
        kafka: Configuration | None = None,
    ) -> None:
        self.id = id
        demanded = {
            **(kafka or {}),
            "transactional.id": id,
            "transaction.timeout.ms": duration(timeout) // timedelta(milliseconds=1),
        }
        self.producer = Producer(settings, linger=linger, schemas=schemas, kafka=demanded)
        self.is_open = False  # whether a transaction has begun and is not committed

    @property
    def client(self) -> confluent_kafka.Producer:
        """The confluent-kafka producer underneath."""
        return self.producer.client

    @property
    def listener(self) -> ErrorListener:
        return self.producer.listener

    def open(self) -> None:
        """Become the only producer of the id."""
        with undisguised():
            self.client.init_transactions(TIMEOUT)

    def begin(self) -> None:
        """Begin a transaction; one that failed is the last of its producer."""
        if self.is_open:
            raise InternalError(f"a transaction of {self.id!r} has failed, and its producer goes on")
        with undisguised():
            self.client.begin_transaction()
        self.is_open = True

    def commit(self, timeout: float = TIMEOUT) -> None:
        """Make all that was sent since `begin` visible at once."""
        with undisguised():
            self.client.commit_transaction(timeout)
        self.is_open = False

    def abort(self) -> bool:
        """Undo what was sent since `begin`; False if another producer of the id has taken over.

        If nobody answers, the next producer of this id ends the transaction.
        """
        try:
            with undisguised():
                self.client.abort_transaction(TIMEOUT)
        except KafkaException as error:
            return error.args[0].code() not in (KafkaError._FENCED, KafkaError._FATAL)
        return True
