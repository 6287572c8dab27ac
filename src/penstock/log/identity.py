"""A topic's identity: a position belongs to the topic it was read from, not to whatever has its name now."""

import re
import time

from confluent_kafka import TopicPartition

from penstock.errors import TopicError, TryAgainError
from penstock.log.broker import Broker
from penstock.settings import Settings

_ID = re.compile(r"penstock\.topic-id=(\S+)")
_CHECK_EVERY = 5.0


class TopicIdentity:
    """The id of a topic, written down with every position in it, and compared from time to time.

    A broker that knows no ids, or a position without one, is believed: it gains one with the next commit.
    `begin_anew` is how a group forgets its positions, if it is not by a reset.
    """

    def __init__(
        self, name: str, settings: Settings, group: str | None, begin_anew: str | None = None
    ) -> None:
        self._name = name
        self._begin_anew = begin_anew or f"`penstock groups reset {group} {name} --to beginning --yes`"
        self._group = group
        self._broker = Broker(settings)
        self._checked_at = time.monotonic()
        self.id = self._broker.topic_ids([name]).get(name)

    def position(self, partition: int, offset: int) -> TopicPartition:
        """Return a position to commit, which says what topic it is in."""
        return mark(TopicPartition(self._name, partition, offset), self.id)

    def refuse_foreign(self, position: TopicPartition) -> None:
        """Raise if a committed position is in a topic that had the same name."""
        self._refuse_other(marked_id(position), self.id)

    def check_if_due(self) -> None:
        """Raise if the topic was made again since; asked every few seconds, and not while nobody answers."""
        if time.monotonic() - self._checked_at >= _CHECK_EVERY:
            try:
                self.check()
            except TryAgainError:
                self._checked_at = time.monotonic()

    def check(self) -> None:
        """Raise if the topic was made again since."""
        now = self._broker.topic_ids([self._name]).get(self._name)
        self._checked_at = time.monotonic()
        self._refuse_other(self.id, now)
        self.id = self.id or now

    def _refuse_other(self, before: str | None, now: str | None) -> None:
        if before is None or now is None or before == now:
            return
        if self._group is None:
            raise TopicError(
                f"topic {self._name!r} was deleted and made again while it was read: its id was {before}, "
                f"now it is {now}",
                hint="start reading anew",
            )
        raise TopicError(
            f"topic {self._name!r} was deleted and made again: group {self._group!r} has positions in the "
            f"one with the id {before}, now it has the id {now}",
            hint=f"begin anew: {self._begin_anew}",
        )


def mark(position: TopicPartition, id: str | None) -> TopicPartition:
    """Return a position with the id of its topic, in the text that Kafka keeps with a commit."""
    if id is None:
        return position
    place = (position.topic, position.partition, position.offset)
    return TopicPartition(*place, f"penstock.topic-id={id}")


def is_foreign(position: TopicPartition, id: str | None) -> bool:
    """Whether a committed position says that it is in a topic with another id."""
    before = marked_id(position)
    return None not in (before, id) and before != id


def marked_id(position: TopicPartition) -> str | None:
    """Return the id of the topic that a position was committed for, if it says."""
    found = _ID.search(position.metadata or "")
    return found[1] if found else None
