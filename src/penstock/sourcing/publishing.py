"""A store's events on Kafka: by capture, out of the database's own log, each once and in order."""

from dataclasses import replace

from penstock.capture import Capture, Outbox, Store
from penstock.errors import ConfigurationError
from penstock.identity import CAPTURES
from penstock.log import Broker, Topic
from penstock.sourcing.recorded import Recorded
from penstock.sourcing.store import EventStore


def topic_of(store: str, category: str, *, partitions: int = 1) -> Topic[Recorded]:
    """Return the topic of a category's events, for flows and consumers to read.

    >>> topic_of("bank", "account").name
    'bank.account'
    """
    return Topic(f"{store}.{category}", Recorded, key="stream", partitions=partitions, retention="forever")


def capture_of(store: EventStore, *, partitions: int = 1) -> Capture:
    """Return the capture that publishes a store: its table of events is an outbox."""
    columns = Outbox(f"{store.name}.events", topic="topic", key="stream", payload="record")
    return Capture(
        f"{store.name}_events", outbox=columns, connection=store.connection_name, partitions=partitions
    )


def publish(store: EventStore, *, partitions: int = 1) -> Capture:
    """Declare the capture of a store, unless it is there; `penstock.capture.Runner` runs it.

    `partitions` are those of topics that it makes: a topic that is there keeps what it has.
    """
    if not store.is_there:
        raise ConfigurationError(
            f"there is no store {store.name!r}", hint=f"make it first: penstock store create {store.name}"
        )
    captures, wanted = Store(store.settings), capture_of(store, partitions=partitions)
    if captures.has(wanted.name):
        found = captures.get(wanted.name)
        if replace(found, partitions=1, paused=False) != replace(wanted, partitions=1):
            raise ConfigurationError(
                f"there is a capture {wanted.name!r} that is not of the store {store.name!r}",
                hint=f"remove it, or give the store another name: penstock capture status {wanted.name}",
            )
        return found
    _refuse_published(store)
    _refuse_namesake(store, wanted)
    captures.put(wanted)
    return wanted


def _refuse_published(store: EventStore) -> None:
    """Without its capture's position, all events would be written again behind those that are there."""
    broker = Broker(store.settings)
    for topic in broker.topics():
        is_own = topic.startswith(f"{store.name}.") and topic.count(".") == 1
        if is_own and any(end > 0 for end in broker.committed_end(topic).values()):
            raise ConfigurationError(
                f"topic {topic!r} has events, and nothing says which ones of the store {store.name!r}",
                hint="delete the topic, so that the store writes all of its events again",
            )


def _refuse_namesake(store: EventStore, capture: Capture) -> None:
    """Topics have no namespace: a store of the same name in another one would write to the same ones."""
    own = capture.identity(store.settings.namespace).ledger
    for topic in Broker(store.settings).topics():
        if topic != own and topic.endswith(f"ledger.{CAPTURES}.{capture.name}"):
            raise ConfigurationError(
                f"a store {store.name!r} of another namespace is published to the same topics, by {topic!r}",
                hint="give one of the two another name",
            )
