"""Consuming: typed events out of a topic, alone or as a member of a group."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Generic, Literal, Self, TypeGuard, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from penstock.durations import duration
from penstock.errors import ConfigurationError, DataError, LogError, PenstockError
from penstock.events import Event
from penstock.log.client import (
    TIMEOUT,
    Configuration,
    ErrorListener,
    Setting,
    asking,
    configuration,
    explain,
    is_transient,
    metadata,
    patiently,
)
from penstock.log.dead_letters import DeadLetters, dead_letter
from penstock.log.deduplicator import Deduplicator
from penstock.log.identity import TopicIdentity
from penstock.log.message import Received, is_received
from penstock.log.positions import Position, from_beginning
from penstock.log.records import Batch, Record
from penstock.log.rewinds import Rewinds
from penstock.log.tiered import TieredClient
from penstock.log.topic import Table, Topic, check_name
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
Delivery = Literal["at-least-once", "at-most-once"]
_log = logging.getLogger("penstock")
_TICK = 0.1
_MEMORY = 100_000
_TAKEN_OVER = (KafkaError.ILLEGAL_GENERATION, KafkaError.UNKNOWN_MEMBER_ID, KafkaError.FENCED_INSTANCE_ID)


@dataclass(frozen=True)
class Rebalance:
    """Partitions that came to this member of the group, or went from it."""

    kind: Literal["assigned", "revoked", "lost"]
    partitions: tuple[int, ...]


class Consumer(Generic[E]):
    """Reads a topic, as typed records or batches.

        with Consumer(clicks, settings, group="billing") as consumer:
            for record in consumer:
                bill(record.event)

    Members of one `group` share the partitions; without a group all partitions are read and nothing is
    committed. `start` counts where the group has no position yet. `delivery` "at-least-once" commits after
    the loop's body has run, "at-most-once" before. `member` makes the membership static: a restart under the
    same name gets its partitions back without a rebalance. `schemas` is the registry, for topics whose
    messages name their schema. `deduplicate` leaves out events whose id is among the last 100,000 of their
    partition, or as many as it says: what a real-time flow wrote again after a crash is read once. Any other
    Kafka setting goes into `kafka`.
    What can't be decoded goes to `<topic>.dead-letters` before the position moves past it. What Kafka no
    longer has is read from the topic's archive, if there is one.
    """

    def __init__(
        self,
        topic: Topic[E],
        settings: Settings,
        *,
        group: str | None = None,
        start: Position | None = None,
        delivery: Delivery = "at-least-once",
        member: str | None = None,
        commit_every: str | timedelta = "1 second",
        on_rebalance: Callable[[Rebalance], None] | None = None,
        deduplicate: bool | int = False,
        schemas: SchemaDirectory | None = None,
        kafka: Configuration | None = None,
    ) -> None:
        if delivery not in ("at-least-once", "at-most-once"):
            raise ConfigurationError(
                f"delivery is {delivery!r}, expected 'at-least-once' or 'at-most-once'",
                hint="for exactly once read and write in one transaction: see ExactlyOnce",
            )
        self.topic = topic
        self.group = check_name(group) if group is not None else None
        self.rebalances = 0
        self._codec = topic.codec(schemas)
        self._start = start or from_beginning()
        self._delivery = delivery
        self._commit_every = duration(commit_every).total_seconds()
        self._on_rebalance = on_rebalance
        self.repeated = 0
        self.malformed = 0  # that were left out; with a group they are in the dead letters
        self._deduplicator = (
            Deduplicator(_MEMORY if deduplicate is True else deduplicate) if deduplicate else None
        )
        self._dead = DeadLetters(settings)
        self._done: dict[int, int] = {}  # partition → offset after the last processed message
        self._rewinds = Rewinds()
        self._unsettled = False  # whether a transaction has failed, perhaps after it was committed
        self._failure: PenstockError | None = None  # of a callback, where it can't be raised
        self._committed_at = time.monotonic()
        self._closing = False
        self._patience = 0.0  # how long another member's transaction may be in the way
        self._listener = ErrorListener()
        demanded = {**(kafka or {}), **_DEMANDED}
        with asking("make a consumer"):
            self._client = TieredClient(
                settings, configuration(settings, _own(self.group, member), demanded, self._listener)
            )
        self._open(settings)

    @property
    def client(self) -> confluent_kafka.Consumer:
        """The confluent-kafka consumer underneath."""
        return self._client

    @property
    def assignment(self) -> list[int]:
        """The partitions this consumer reads now."""
        return sorted(each.partition for each in self._client.assignment())

    @property
    def _begin_anew(self) -> str | None:
        """How to begin anew where the positions are not the group's, and no reset moves them."""
        return None

    @property
    def _joined(self) -> bool:
        return self.group is None or self.rebalances > 0

    def __iter__(self) -> Iterator[Record[E]]:
        return self.records()

    def records(self, *, idle: str | timedelta | None = None) -> Iterator[Record[E]]:
        """Yield record by record; with `idle`, end when nothing has come for that long."""
        for messages in self._polls(500, None, idle):
            finished: dict[int, int] = {}
            with self._read_again_unless(finished, messages):
                batch = self._decode(messages)
                if not self._may_deliver(messages, finished):
                    continue
                for record in batch:
                    yield record
                    if self._delivery == "at-least-once":
                        partition = record.partition
                        self._done[partition] = finished[partition] = record.offset + 1
                self._count_as_done(messages, finished)

    def batches(
        self,
        size: int = 500,
        wait: str | timedelta = "1 second",
        *,
        idle: str | timedelta | None = None,
    ) -> Iterator[Batch[E]]:
        """Yield batches of up to `size` events, collected for `wait` at most."""
        for messages in self._polls(size, wait, idle):
            finished: dict[int, int] = {}
            with self._read_again_unless(finished, messages):
                batch = self._decode(messages)
                if not self._may_deliver(messages, finished):
                    continue
                if batch:
                    yield batch
                self._count_as_done(messages, finished)

    def seek(self, partition: int, offset: int) -> None:
        """Go on reading a partition at another offset."""
        self._done.pop(partition, None)
        self._rewinds.seek(partition)
        with asking(f"seek to {offset} in partition {partition}", self._listener):
            self._client.seek(TopicPartition(self.topic.name, partition, offset))

    def commit(self) -> bool:
        """Commit what has been processed; False if its partitions went to another member meanwhile."""
        self._dead.flush()
        self._committed_at = time.monotonic()
        if self.group is None or not self._done:
            return True
        if not self._is_member():
            return False
        done, self._done = self._done, {}
        positions = [self._identity.position(*each) for each in done.items()]
        with asking(f"commit positions of group {self.group!r}", self._listener):
            accepted = self._commit(positions)
        if not accepted:
            self._done = done | self._done  # a rebalance that is under way may leave them here
        return accepted

    def _commit(self, positions: list[TopicPartition]) -> bool:
        """A broker in the midst of a rebalance asks to try again: the rebalance goes on by itself."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                self._client.commit(offsets=positions, asynchronous=False)
                return True
            except KafkaException as error:
                code = error.args[0].code()
                if code in _TAKEN_OVER:
                    return False
                if code != KafkaError.REBALANCE_IN_PROGRESS or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def close(self) -> None:
        """Commit what has been processed and leave the group."""
        self._closing = True
        try:
            self.commit()
        finally:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _read_again_unless(self, finished: dict[int, int], messages: list[Received]) -> Iterator[None]:
        """If the body is left before its end, what was not finished is read again by the next loop."""
        try:
            yield
        except BaseException:
            self._rewinds.read_again(
                message for message in messages if message.offset() >= finished.get(message.partition(), 0)
            )
            raise

    def _may_deliver(self, messages: list[Received], finished: dict[int, int]) -> bool:
        """At most once: commit first; what the group does not let us have is not delivered."""
        if self._delivery == "at-least-once":
            return True
        if not self._finish(messages, now=True):
            self._done.clear()
            self._rewinds.read_again(messages)
            return False
        finished.update(_ends(messages))
        return True

    def _count_as_done(self, messages: list[Received], finished: dict[int, int]) -> None:
        finished.update(_ends(messages))
        if self._delivery == "at-least-once":
            self._finish(messages)

    def _is_member(self) -> bool:
        """Whether the group knows this member: without an id the broker can't know that it left."""
        return bool(self._client.memberid())

    def _open(self, settings: Settings) -> None:
        name = self.topic.name
        with asking(f"read topic {name!r}", self._listener):
            found = metadata(self._client, self._listener, name).topics[name]
            if found.error is not None:
                raise explain(f"read topic {name!r}", found.error, self._listener)
            self._identity = TopicIdentity(name, settings, self.group, self._begin_anew)
            if self.group is None:
                partitions = [TopicPartition(name, number) for number in found.partitions]
                self._client.assign(self._rewound(self._start.resolve(self._client, partitions)))
            else:
                self._client.subscribe(
                    [name], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
                )

    def _polls(
        self, size: int, wait: str | timedelta | None, idle: str | timedelta | None
    ) -> Iterator[list[Received]]:
        """Yield lists of messages: what is there, or what comes within `wait` of the first one."""
        linger = duration(wait).total_seconds() if wait is not None else 0.0
        patience = duration(idle).total_seconds() if idle is not None else None
        quiet_since = time.monotonic()
        while True:
            if self._is_behind:
                self._go_back()
                quiet_since = time.monotonic()
            messages = self._collect(size, linger)
            with self._read_again_unless({}, messages):
                self._identity.check_if_due()
            if messages:
                yield messages
            if messages or not self._joined:
                quiet_since = time.monotonic()
            elif patience is not None and time.monotonic() - quiet_since >= patience:
                return
            else:
                self._finish([])

    def _collect(self, size: int, linger: float) -> list[Received]:
        """Return messages that are this member's to work on; none are skipped if an error comes between."""
        found: list[Message] = []
        self._rewinds.begin()
        with asking(f"read topic {self.topic.name!r}", self._listener):
            try:
                self._fetch(found, size, linger)
                if self._failure is not None:  # the cause of whatever else is wrong
                    raise self._failure
                good = self._rewinds.current([each for each in found if self._is_good(each)])
            except BaseException:
                self._rewinds.read_again(each for each in found if is_received(each))
                raise
        return good

    def _fetch(self, found: list[Message], size: int, linger: float) -> None:
        """Wait a tick for a first message, so that Ctrl-C is heard, then for more of them."""
        first = self._client.poll(_TICK)
        if first is None:
            self._listener.raise_refusal(f"read topic {self.topic.name!r}")
            return
        found.append(first)
        deadline = time.monotonic() + linger
        while len(found) < size:
            left = deadline - time.monotonic()
            found += self._client.consume(size - len(found), timeout=max(0.0, min(left, _TICK)))
            if left <= 0:
                break

    @property
    def _is_behind(self) -> bool:
        """Whether something is to be read again."""
        return self._unsettled or bool(self._rewinds.back)

    def _settled(self) -> dict[int, int]:
        """Where each partition stands after a transaction that failed; without transactions none does."""
        return {}

    def _go_back(self) -> None:
        """Seek to what is to be read again; a partition that is not to be had yet is tried once more."""
        if self._unsettled:
            with asking(f"find the positions of group {self.group!r}", self._listener):
                self._rewinds.back.update(self._settled())
            self._unsettled = False
        with asking(f"read topic {self.topic.name!r} again", self._listener):
            held = {each.partition for each in self._client.assignment()}
            for partition, offset in list(self._rewinds.back.items()):
                try:
                    if partition in held:
                        self._seek(TopicPartition(self.topic.name, partition, offset))
                    del self._rewinds.back[partition]
                except KafkaException as error:
                    if error.args[0].code() != KafkaError._STATE:
                        raise

    def _seek(self, place: TopicPartition) -> None:
        if self._deduplicator is not None:
            place.offset = self._deduplicator.resume_from(place)
        for each in self._rewound([place]):
            self._client.seek(each)

    def _is_good(self, message: Message) -> TypeGuard[Received]:
        error = message.error()
        return error is None or self._raise(message, error)

    def _raise(self, message: Message, error: KafkaError) -> bool:
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise LogError(
                f"group {self.group!r} stands in {self.topic.name}[{message.partition()}] where the log "
                f"no longer is: {error.str()}",
                hint=f"events were deleted before they were read; {self._way_on(message.partition() or 0)}",
            )
        if is_transient(error):
            return False
        raise explain(f"read topic {self.topic.name!r}", error, self._listener)

    def _way_on(self, partition: int) -> str:  # noqa: ARG002
        """What to do about a position that the log no longer has."""
        return "see `penstock groups reset`"

    def _decode(self, messages: list[Received]) -> Batch[E]:
        events, failures = self._codec.decode_all([message.value() for message in messages])
        if not failures and self._deduplicator is None:
            return Batch(events, messages, 0)
        dead = {place for place in failures if self._is_dead(messages[place])}
        for place in sorted(dead):
            self._bury(messages[place], failures[place])
        kept = [
            place
            for place, message in enumerate(messages)
            if place not in dead and not self._is_duplicate(message, events[place])
        ]
        return Batch([events[place] for place in kept], [messages[place] for place in kept], len(dead))

    def _bury(self, message: Received, error: DataError) -> None:
        """Send what can't be decoded to the dead letters; without a group, each reading would do so again."""
        if self.group is not None:
            self._dead.send(dead_letter(message, error, datetime.now(UTC)))
        elif not self.malformed:
            place = f"{message.topic()}[{message.partition()}]@{message.offset()}"
            _log.warning("a message was left out, as all malformed ones will be: %s: %s", place, error)
        self.malformed += 1

    def _is_duplicate(self, message: Received, event: E | None) -> bool:
        if self._deduplicator is None or not self._deduplicator.is_duplicate(message, event):
            return False
        self.repeated += not self._deduplicator.is_old(message)
        return True

    def _is_dead(self, message: Received) -> bool:
        is_old = self._deduplicator is not None and self._deduplicator.is_old(message)
        return not self._is_tombstone(message) and not is_old

    def _is_tombstone(self, message: Received) -> bool:
        return isinstance(self.topic, Table) and message.value() is None

    def _finish(self, messages: list[Received], *, now: bool = False) -> bool:
        """Count messages as processed and commit if it is time to; False if somebody else will read them."""
        if self.group is None:
            return True
        if self._deduplicator is not None:
            messages = [message for message in messages if not self._deduplicator.is_old(message)]
        self._done.update(_ends(messages))
        if now or time.monotonic() - self._committed_at >= self._commit_every:
            return self.commit()
        return True

    def _assigned(self, client: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        if self._closing:
            return
        try:
            with asking(f"find the positions of group {self.group!r}", self._listener):
                self._identity.check()
                places = self._places(partitions)
                client.incremental_assign(self._rewound(places))
        except PenstockError as error:
            self._failure = error
            return
        self._rewinds.assign(places)
        self._report("assigned", partitions)

    def _places(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Where the group stands in partitions, or where it starts if it has no position there yet."""
        known = self._committed(partitions) if partitions else []
        for each in known:
            self._identity.refuse_foreign(each)
        unknown = [each for each in known if each.offset < 0]
        return [each for each in known if each.offset >= 0] + (self._started(unknown) if unknown else [])

    def _committed(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Ask for positions; a member that died in a transaction keeps us waiting until it is timed out."""
        patience = self._patience + TIMEOUT
        return patiently(lambda: self._client.committed(partitions, timeout=TIMEOUT), patience)

    def _started(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Where to start: written down if it moves, or a crash before the first commit would skip events."""
        places = self._start.resolve(self._client, partitions)
        if self._start.kind != "beginning":
            self._commit([self._identity.position(each.partition, each.offset) for each in places])
        return places

    def _rewound(self, places: list[TopicPartition]) -> list[TopicPartition]:
        """Where to read from: further back if duplicates of earlier events are to be known."""
        if self._deduplicator is None:
            return places
        firsts = [self._client.get_watermark_offsets(each, timeout=TIMEOUT)[0] for each in places]
        return [self._deduplicator.rewind(*each) for each in zip(places, firsts, strict=True)]

    def _revoked(self, client: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        try:
            self.commit()  # if it is too late for that, the next owner reads them again
        finally:
            self._part_with(client, partitions, "revoked")

    def _lost(self, client: confluent_kafka.Consumer, partitions: list[TopicPartition]) -> None:
        """Somebody else has them already: a commit would move their position back."""
        self._part_with(client, partitions, "lost")

    def _part_with(
        self,
        client: confluent_kafka.Consumer,
        partitions: list[TopicPartition],
        kind: Literal["revoked", "lost"],
    ) -> None:
        for each in partitions:
            self._done.pop(each.partition, None)
        self._rewinds.revoke(each.partition for each in partitions)
        client.incremental_unassign(partitions)
        self._report(kind, partitions)

    def _report(self, kind: Literal["assigned", "revoked", "lost"], partitions: list[TopicPartition]) -> None:
        self.rebalances += 1
        if self._on_rebalance is not None:
            self._on_rebalance(Rebalance(kind, tuple(sorted(each.partition for each in partitions))))


def _ends(messages: list[Received]) -> dict[int, int]:
    """Where each partition goes on after some messages of it."""
    return {message.partition(): message.offset() + 1 for message in messages}


def _own(group: str | None, member: str | None) -> Configuration:
    own: dict[str, Setting] = {
        "group.id": group or "penstock.no-group",
        "partition.assignment.strategy": "cooperative-sticky",
        "isolation.level": "read_committed",
        "fetch.queue.backoff.ms": 5,
    }
    return own if member is None else own | {"group.instance.id": member}


# Positions are ours to commit, and one that the log no longer has is an error, not a silent jump.
_DEMANDED: Configuration = {"enable.auto.commit": False, "auto.offset.reset": "error"}
