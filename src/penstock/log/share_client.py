"""The client of a share group: takes messages, and reports to the broker what became of them."""

import json
from collections import deque
from collections.abc import Sequence
from typing import TypeGuard

from confluent_kafka import (
    AcknowledgeType,
    IllegalStateException,
    KafkaError,
    KafkaException,
    Message,
    ShareConsumer,
)

from penstock.errors import GroupError, PenstockError
from penstock.log.access import is_denied
from penstock.log.client import (
    TIMEOUT,
    Configuration,
    ErrorListener,
    asking,
    configuration,
    explain,
    is_transient,
)
from penstock.log.message import Delivered
from penstock.settings import Settings

TICK = 0.1
_TAKEN_BACK = (
    KafkaError.INVALID_RECORD_STATE,
    KafkaError.SHARE_SESSION_NOT_FOUND,
    KafkaError.INVALID_SHARE_SESSION_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
)
# The client's statistics are the only place where it says that it has joined its group.
_DEMANDED: Configuration = {"share.acknowledgement.mode": "explicit", "statistics.interval.ms": 250}


class ShareClient:
    """A member of a share group that reads one topic."""

    def __init__(
        self, topic: str, settings: Settings, group: str, at_once: int, kafka: Configuration | None
    ) -> None:
        self._topic = topic
        self._group = group
        self._joined = False
        self._statistics: deque[str] = deque(maxlen=1)
        self._listener = ErrorListener()
        own: Configuration = {"group.id": group, "max.poll.records": at_once}
        # No Python runs in this callback: a Ctrl-C that is heard inside of one breaks the client's poll.
        demanded = {**(kafka or {}), **_DEMANDED, "stats_cb": self._statistics.append}
        with asking("make a share consumer"):
            self._client = ShareConsumer(configuration(settings, own, demanded, self._listener))
            self._client.subscribe([topic])

    @property
    def joined(self) -> bool:
        """Whether the group has given this member partitions to read."""
        if not self._joined and self._statistics:
            self._joined = json.loads(self._statistics[0]).get("cgrp", {}).get("rebalance_cnt", 0) > 0
        return self._joined

    def poll(self, wait: float = TICK) -> list[Delivered]:
        """Wait a tick for messages, so that Ctrl-C is heard; what came before must be settled."""
        try:
            found = self._client.poll(wait)
        except KafkaException as error:
            raise self._explained(error.args[0]) from error
        good = [message for message in found if self._is_good(message)]
        self._listener.raise_refusal(f"read topic {self._topic!r} as a queue")
        return good

    def accept(self, messages: Sequence[Delivered]) -> str | None:
        """Say that messages are done with; if the broker had taken them back before, return what it says."""
        return self._settle(messages, AcknowledgeType.ACCEPT)

    def release(self, messages: Sequence[Delivered]) -> None:
        """Give messages back; what the broker has taken back already is where it should be."""
        if messages:
            self._settle(messages, AcknowledgeType.RELEASE)

    def close(self) -> None:
        """Leave the group; the broker hands out again what was not settled."""
        with asking(f"leave group {self._group!r}", self._listener):
            self._client.close()

    def _settle(self, messages: Sequence[Delivered], kind: AcknowledgeType) -> str | None:
        what = f"settle messages of {self._topic!r}"
        forgotten = [message for message in messages if not self._mark(message, kind)]
        with asking(what, self._listener):
            answers = self._client.commit_sync(TIMEOUT)
        refused = [answer.args[0] for answer in answers.values() if answer is not None]
        for refusal in refused:
            if refusal.code() not in _TAKEN_BACK:
                raise explain(what, refusal, self._listener)
        if refused:
            return str(refused[0].str())
        return "the client no longer holds it" if forgotten or not answers else None

    def _mark(self, message: Delivered, kind: AcknowledgeType) -> bool:
        try:
            self._client.acknowledge(message, kind)
            return True
        except IllegalStateException:
            return False  # its session ended, so the broker has it back

    def _is_good(self, message: Message) -> TypeGuard[Delivered]:
        error = message.error()
        if error is None:
            return True
        if is_transient(error):
            return False
        raise self._explained(error)

    def _explained(self, error: KafkaError) -> PenstockError:
        if not error.fatal() or is_denied(error):
            return explain(f"read topic {self._topic!r}", error, self._listener)
        return GroupError(
            f"group {self._group!r} can't be a queue's: {error.str()}",
            hint="if it is a group of consumers, give the queue another name",
        )
