"""Redrive: dead letters go back to their topic, once the cause is fixed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from confluent_kafka import TopicPartition

from penstock.errors import (
    AuthenticationError,
    AuthorizationError,
    DataError,
    FencedError,
    PenstockError,
)
from penstock.log.broker import Broker
from penstock.log.client import asking, committed, patiently
from penstock.log.cursor import Cursor
from penstock.log.dead_letters import DeadLetter
from penstock.log.identity import TopicIdentity
from penstock.log.message import Received
from penstock.log.producer import Producer
from penstock.log.topic import DEAD_LETTERS
from penstock.log.writer import Writer
from penstock.settings import Settings

_CHUNK = 500
KeyAndValue = tuple[bytes | None, bytes | None]
GROUP = "penstock.replay."  # as positions that were committed before have it


@dataclass(frozen=True)
class Redriven:
    """How many dead letters went back to their topic, and how many still can't be decoded.

    Duplicates (`repeated`) were left out: another letter is of the same record.
    """

    sent: int
    still_dead: int
    repeated: int = 0


def redrive(
    topic: str,
    settings: Settings,
    *,
    readable: Callable[[bytes | None], object] | None = None,
    record: Callable[[DeadLetter], KeyAndValue] = lambda letter: (letter.key, letter.value),
    progress: Callable[[int, int], None] = lambda *_: None,
) -> Redriven:
    """Send a topic's dead letters again, each exactly once; of one record that several readers met, one.

    `readable` is the decode function of the topic's codec: a letter that it still refuses goes to the end
    of the dead letters with its new error. Without it every letter is sent. `record` makes what is
    sent, as key and value, of a letter that never stood in the topic; it may refuse it as well. `progress`
    gets how many of how many are done.
    """
    source, group = topic + DEAD_LETTERS, GROUP + topic

    def judged(letter: DeadLetter) -> KeyAndValue:
        if readable is not None:
            readable(letter.value)
        return record(letter)

    broker = Broker(settings)
    if not broker.exists(source):
        broker.topic(topic)  # or say that there is none
        return Redriven(0, 0)
    writer = Writer(settings, group)
    try:
        writer.fence()  # before the position is read: until then another redrive may move it
        with Cursor(source, settings, group=group, archived=True) as cursor:
            letters = WaitingLetters(cursor, TopicIdentity(source, settings, group))
            return _redriven(letters, writer, judged, progress)
    except PenstockError as error:
        writer.abort()
        if writer.is_fenced and not isinstance(error, AuthenticationError | AuthorizationError):
            raise FencedError(
                f"another redrive of {source!r} has begun, so this one ends",
                hint="the other one deals with the letters that are left",
            ) from error
        raise
    finally:
        writer.abort()


class WaitingLetters:
    """The dead letters that are there when a redrive begins and that none before it has dealt with."""

    def __init__(self, cursor: Cursor, identity: TopicIdentity) -> None:
        self._cursor, self._identity = cursor, identity
        self.end = cursor.ends()[0]
        self.start = max(cursor.beginnings()[0], self._known())
        cursor.go_to({0: self.start})

    def chunks(self) -> Iterator[tuple[list[Received], int]]:
        """Yield letters with the position after them; control records leave gaps in the offsets."""
        for messages in self._cursor.chunks_to({0: self.end}, _CHUNK):
            yield messages, self._cursor.position[0]

    def commit(self, writer: Writer, position: int) -> None:
        cursor = self._cursor
        with asking(f"commit the redrive of {cursor.topic!r}", cursor.listener):
            writer.commit([self._identity.position(0, position)], cursor.client.consumer_group_metadata())

    def _known(self) -> int:
        """Where the redrive before this one ended; negative if there was none."""
        cursor = self._cursor
        with asking(f"read {cursor.topic!r}", cursor.listener):
            place = TopicPartition(cursor.topic, 0)
            (known,) = patiently(lambda: committed(cursor.client, cursor.listener, [place]))
        self._identity.refuse_foreign(known)
        return int(known.offset)


def _redriven(
    letters: WaitingLetters,
    writer: Writer,
    record: Callable[[DeadLetter], KeyAndValue],
    progress: Callable[[int, int], None],
) -> Redriven:
    sent = dead = repeated = 0
    seen: set[tuple[str, int, int]] = set()
    for messages, position in letters.chunks():
        producer = writer.begin()
        for message in messages:
            letter = DeadLetter.from_message(message)
            if letter.origin in seen:
                repeated += 1
                continue
            if letter.origin is not None:
                seen.add(letter.origin)
            alive = _send_again(producer, message, letter, record)
            sent, dead = sent + alive, dead + (not alive)
        letters.commit(writer, position)
        progress(position - letters.start, letters.end - letters.start)
    return Redriven(sent, dead, repeated)


def _send_again(
    producer: Producer,
    message: Received,
    letter: DeadLetter,
    record: Callable[[DeadLetter], KeyAndValue],
) -> bool:
    try:
        key, value = record(letter)
    except DataError as error:
        again = DeadLetter(**{**vars(letter), "error": error.message})
        producer.send_bytes(message.topic(), again.key, again.value, again.to_headers())
        return False
    producer.send_bytes(letter.topic, key, value, list(letter.headers))
    return True
