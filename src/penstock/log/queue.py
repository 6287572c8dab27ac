"""Queues: the events of a topic handed out one by one, to any number of workers."""

import time
from collections import deque
from collections.abc import Generator, Iterator
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from penstock.durations import duration
from penstock.errors import (
    ConfigurationError,
    DataError,
    LeaseError,
    PenstockError,
    TopicError,
    TryAgainError,
)
from penstock.events import Event
from penstock.log.broker import Broker
from penstock.log.client import Configuration
from penstock.log.dead_letters import DeadLetters, dead_letter
from penstock.log.lease import Decision, Lease, State
from penstock.log.message import Delivered
from penstock.log.share_client import TICK, ShareClient
from penstock.log.share_group import prepare
from penstock.log.topic import DEAD_LETTERS, Table, Topic, check_name
from penstock.schemas import SchemaDirectory
from penstock.schemas.codec import Decoded
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
_UNDECIDED = "it was not decided on"
_SIT_OUT = 0.7  # the share of a lease for which an outage is waited for
_STALE = 0.5  # the share of a lease after which an event that nobody was shown is given back
_PAUSE = 0.2


class Queue(Generic[E]):
    """Hands out a topic's events to the workers of a group, each to one worker at a time.

        with Queue(jobs, settings, group="resize") as queue:
            for lease in queue.take():
                work(lease.event)
                lease.acknowledge()

    A lease that was not decided on when the next is asked for, or when the queue is left, is released.
    `limit` is how often an event is handed out before it goes to `<topic>.dead-letters`, `lease` how long a
    worker may hold what it took; both belong to the group. `at_once` is about how many events a worker takes
    at a time: a producer's batch is never split. Order is not guaranteed. A queue belongs to one thread.
    """

    def __init__(
        self,
        topic: Topic[E],
        settings: Settings,
        *,
        group: str,
        limit: int = 5,
        lease: str | timedelta = "30 seconds",
        at_once: int = 10,
        schemas: SchemaDirectory | None = None,
        kafka: Configuration | None = None,
    ) -> None:
        _check(topic, limit, at_once)
        self.topic = topic
        self.group = check_name(group)
        self.limit = limit
        self._lease = duration(lease)
        self._codec = topic.codec(schemas)
        self._current: Lease[E] | None = None
        self._waiting: deque[Lease[E]] = deque()  # taken from the broker, not shown yet
        self._asking_since: float | None = None  # the client may ask on after a poll that found nothing
        self._closed = False
        broker = Broker(settings)
        broker.topic(topic.name)
        broker.refuse_unreadable(topic.name)
        prepare(broker, group, limit, self._lease)
        self._dead = DeadLetters(settings)
        self._dead.ensure(topic.name + DEAD_LETTERS)  # what can't be buried later is not to be taken at all
        self._client = ShareClient(topic.name, settings, group, at_once, kafka)

    def take(self, *, idle: str | timedelta | None = None) -> Iterator[Lease[E]]:
        """Yield leases for ever; with `idle`, end when nothing has come for that long."""
        patience = duration(idle).total_seconds() if idle is not None else None
        quiet_since = time.monotonic()
        while not self._closed:
            found = yield from self.poll()
            if found or not self.joined:
                quiet_since = time.monotonic()
            elif patience is not None and time.monotonic() - quiet_since >= patience:
                return

    @property
    def joined(self) -> bool:
        """Whether the group has given this worker partitions to read."""
        return self._client.joined

    @property
    def is_asking(self) -> bool:
        """Whether the client may have taken an event since the last poll, whose lease runs already."""
        return self._asking_since is not None

    def poll(self, wait: float = TICK) -> Generator[Lease[E], None, bool]:
        """Yield the leases of what the broker hands out in some seconds; return whether there were any."""
        self._let_go(_UNDECIDED)
        messages, since = self._taken(wait)
        if messages and time.monotonic() - since > self._lease.total_seconds() * _STALE:
            messages, since = self._exchanged(messages, since)
        if messages:
            yield from self._hand_out(messages, since)
        return bool(messages)

    def close(self) -> None:
        """Release what is held and leave the group."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._current is not None:
                self._waiting.append(self._current)
            self._give_back()
        finally:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # Only an error of the work counts against the event: a Ctrl-C is not its fault.
            if isinstance(error, Exception):
                self._let_go(f"{type(error).__name__}: {error}")
        finally:
            self.close()

    def _taken(self, wait: float) -> tuple[list[Delivered], float]:
        """Return messages, and since when they may have been held at the latest."""
        since = self._asking_since or time.monotonic()
        messages = self._client.poll(wait)
        self._asking_since = None if messages else time.monotonic()
        return messages, since

    def _exchanged(self, messages: list[Delivered], since: float) -> tuple[list[Delivered], float]:
        """Give back what was held for too long to be worked on now, unless its next delivery is its end."""
        last = [message for message in messages if message.delivery_count() >= self.limit]
        self._client.release([message for message in messages if message not in last])
        return (last, since) if last else self._taken(TICK)

    def _hand_out(self, messages: list[Delivered], since: float) -> Iterator[Lease[E]]:
        """Yield leases one by one; one that is over before its turn is somebody else's by now."""
        try:
            self._waiting.extend(self._readable(messages, since + self._lease.total_seconds()))
            while self._waiting and not self._waiting[0].over:
                self._current = self._waiting.popleft()
                yield self._current
                self._let_go(_UNDECIDED)
        finally:
            self._give_back()

    def _let_go(self, reason: str) -> None:
        """Release the lease that was shown last, unless it was decided on."""
        lease, self._current = self._current, None
        if lease is not None and lease.state == "held":
            lease.release(reason)

    def _give_back(self) -> None:
        """Release what was taken and never shown."""
        held = [lease for lease in self._waiting if lease.state == "held"]
        self._waiting.clear()
        for lease in held:
            lease.state = "released"
        self._client.release([lease.message for lease in held])

    def _readable(self, messages: list[Delivered], until: float) -> list[Lease[E]]:
        """Return leases of what is to be worked on; the rest goes to the dead letters at once."""
        events, failures = self._decoded(messages)
        good: list[Lease[E]] = []
        dead: list[tuple[Delivered, DataError | str]] = []
        for place, (event, message) in enumerate(zip(events, messages, strict=True)):
            if event is None:
                dead.append((message, failures[place]))
            elif message.delivery_count() > self.limit:
                dead.append((message, self._too_often(message, "its workers did not get to decide")))
            else:
                good.append(Lease(event, message, until, self._decide))
        try:
            self._bury(dead)  # if the broker has taken it back meanwhile, the next worker buries it
        except PenstockError:
            self._client.release([lease.message for lease in good])
            raise
        return good

    def _decoded(self, messages: list[Delivered]) -> Decoded[E]:
        """Decode; an outage is sat out while the leases last, because giving them back counts."""
        until = time.monotonic() + self._lease.total_seconds() * _SIT_OUT
        while True:
            try:
                return self._codec.decode_all([message.value() for message in messages])
            except Exception as error:
                if isinstance(error, TryAgainError | OSError) and time.monotonic() < until:
                    time.sleep(_PAUSE)
                    continue
                self._give_up(messages, error)
                raise

    def _give_up(self, messages: list[Delivered], error: Exception) -> None:
        """Give back what can't be decoded now; the broker would drop unseen what it hands out too often."""
        worn = [message for message in messages if message.delivery_count() > self.limit]
        self._client.release([message for message in messages if message not in worn])
        self._bury(
            [(message, self._too_often(message, f"it could not be decoded: {error}")) for message in worn]
        )

    def _decide(self, lease: Lease[E], decision: Decision, reason: str) -> State:
        """Do what a lease decided; raise if it was no longer held, so that its work will be done again."""
        if decision == "acknowledged":
            refused = self._client.accept([lease.message])
        elif decision == "released" and (lease.deliveries < self.limit or lease.over):
            self._client.release([lease.message])
            return "released"
        elif lease.over:
            self._client.release([lease.message])
            refused = f"more than {self._lease} have passed"
        else:
            cause = self._too_often(lease.message, reason) if decision == "released" else reason
            refused = self._bury([(lease.message, cause)])
        if refused is not None:
            raise LeaseError(
                f"{lease.place} was {decision} too late, it is handed out again: {refused}",
                hint="the work will be done twice: give the queue a longer `lease`, or take less at once",
            )
        return decision

    def _bury(self, dead: list[tuple[Delivered, DataError | str]]) -> str | None:
        """Accept messages once their dead letters are in the log; if they can't be, give them back."""
        if not dead:
            return None
        messages = [message for message, _ in dead]
        try:
            for message, cause in dead:
                self._dead.send(dead_letter(message, cause, datetime.now(UTC), message.delivery_count()))
            self._dead.flush()
        except PenstockError:
            self._client.release(messages)
            raise
        return self._client.accept(messages)

    def _too_often(self, message: Delivered, reason: str) -> str:
        return f"delivered {message.delivery_count()} times, the limit is {self.limit}: {reason}"


def _check(topic: Topic[Any], limit: int, at_once: int) -> None:
    if isinstance(topic, Table):
        raise TopicError(f"table {topic.name!r} can't be a queue", hint="queue a topic: its events end")
    if limit < 1:
        raise ConfigurationError(f"limit is {limit}, expected at least 1 delivery")
    if at_once < 1:
        raise ConfigurationError(f"at_once is {at_once}, expected at least 1 event")
