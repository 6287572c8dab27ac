"""One archiver of a topic at a time: whoever comes later takes over, and the other one finds out."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException

from penstock.errors import FencedError, SinkError
from penstock.log.archive.declarations import STATE, State, own_topic
from penstock.log.transactional_producer import FENCED
from penstock.log.transactional_writer import TransactionalWriter
from penstock.settings import Settings

_TIMEOUT = 60_000  # milliseconds


class Fence:
    """Writes what an archiver does into the archive's own topic, as its only writer.

    The files would be right without it, as two archivers write the same records: it keeps the folder tidy,
    and one from deleting what the other has only begun to look at.
    """

    def __init__(self, settings: Settings, topic: str) -> None:
        self._topic = topic
        with self._explained():
            id = f"penstock.archive.{topic}"
            self._writer = TransactionalWriter(settings, id, own_topic(topic), _TIMEOUT)

    def note(self, state: State) -> None:
        """Write down how the archive is; raises if another archiver has taken over."""
        with self._explained():
            self._writer.write([], (STATE, state.to_json()))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except SinkError as error:
            cause = error.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() in FENCED:
                hint = "let one of the two run, and stop the other"
                raise FencedError(f"another process archives {self._topic!r} now", hint=hint) from error
            raise
