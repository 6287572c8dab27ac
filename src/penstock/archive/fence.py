"""One archiver of a topic at a time: whoever comes later takes over, and the other one finds out."""

from collections.abc import Callable

from confluent_kafka import KafkaException

from penstock.errors import FencedError, PenstockError
from penstock.log.archive.declarations import STATE, State, own_topic
from penstock.log.client import explain
from penstock.log.transactional_producer import FENCED, TransactionalProducer
from penstock.settings import Settings


class Fence:
    """Writes what an archiver does into the archive's own topic, as its only writer.

    The files would be right without it, as two archivers write the same records: it keeps the folder tidy,
    and one from deleting what the other has only begun to look at.
    """

    def __init__(self, settings: Settings, topic: str) -> None:
        self._topic = topic
        self._producer = TransactionalProducer(settings, f"penstock.archive.{topic}", "1 minute")
        self._step(self._producer.open)

    def note(self, state: State) -> None:
        """Write down how the archive is; raises if another archiver has taken over."""
        self._step(lambda: self._write(state.to_json()))

    def _write(self, value: bytes) -> None:
        self._producer.begin()
        self._producer.client.produce(own_topic(self._topic), value, b"state", partition=STATE)
        self._producer.commit()

    def _step(self, act: Callable[[], None]) -> None:
        try:
            act()
        except KafkaException as error:
            raise self._explained(error) from error

    def _explained(self, error: KafkaException) -> PenstockError:
        if error.args[0].code() in FENCED:
            return FencedError(
                f"another process archives {self._topic!r} now",
                hint="let one of the two run, and stop the other",
            )
        return explain(f"note how the archive of {self._topic!r} is", error.args[0], self._producer.listener)
