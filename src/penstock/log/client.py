"""What every Kafka client of ours has in common: its settings, and a listener for its errors."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.errors import LogError, PenstockError, SettingsError, TopicError
from penstock.log.access import access_error, is_refused
from penstock.settings import Settings, reveal

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient, ClusterMetadata

T = TypeVar("T")
Setting = str | int | float | bool | Callable[..., object]
Configuration = Mapping[str, Setting]  # of a client of Kafka's, by librdkafka's names
TIMEOUT = 15.0
_UNREACHABLE = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
)
_NOT_YET = (
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
)
# What a client says of itself; why it is so, it has said before, in the background.
_CONSEQUENCES = (*_UNREACHABLE, KafkaError._FATAL, KafkaError._STATE, KafkaError._WAIT_COORD)
_WRONG_TOPIC = (KafkaError.INVALID_CONFIG, KafkaError.INVALID_PARTITIONS, KafkaError.TOPIC_ALREADY_EXISTS)


class ErrorListener:
    """Keeps what a client says in the background, so that an error can name the cause.

    A client that is refused goes on trying in silence; `refusal` is set when trying again is no use. `user`
    is the name under which it comes.
    """

    def __init__(self) -> None:
        self.last: str | None = None
        self.refusal: KafkaError | None = None
        self.user: str | None = None

    def __call__(self, error: KafkaError) -> None:
        if self.last is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error.str()
        if error.fatal() or is_refused(error):
            self.refusal = error

    def raise_refusal(self, what: str) -> None:
        """Raise what makes trying again useless, if anything does."""
        if self.refusal is not None:
            raise explain(what, self.refusal, self)


def configuration(
    settings: Settings, own: Configuration, demanded: Configuration, listener: ErrorListener
) -> dict[str, Any]:
    """Return a client's configuration: the user's settings win over our own, but not over what we demand."""
    user = settings.kafka.get("sasl.username")
    listener.user = None if user is None else reveal(user)
    # librdkafka's own lines on stderr would be a second, cruder voice: errors are raised instead.
    return {"log_level": 0} | dict(own) | settings.client() | dict(demanded) | {"error_cb": listener}


def is_transient(error: KafkaError) -> bool:
    """Say whether the client goes on trying by itself, so that there is nothing to report."""
    return error.retriable() or error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT)


def patiently(ask: Callable[[], T], patience: float = TIMEOUT) -> T:
    """Ask again while the broker will know in a moment, as of a topic that is new or after its start."""
    deadline = time.monotonic() + patience
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in _NOT_YET or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def metadata(
    client: "Consumer | Producer | AdminClient", listener: ErrorListener, topic: str | None = None
) -> "ClusterMetadata":
    """Return the topics that a client sees; one that is refused does not wait until the time is up."""
    deadline, patience = time.monotonic() + TIMEOUT, 1.0
    while True:
        try:
            return client.list_topics(topic, timeout=min(patience, max(0.1, deadline - time.monotonic())))
        except KafkaException as error:
            client.poll(0)  # what it has to say in the background is heard only then
            known = listener.refusal is not None or error.args[0].code() not in _UNREACHABLE
            if known or time.monotonic() > deadline:
                raise
            patience *= 2
            time.sleep(0.05)


def committed(
    client: Consumer, listener: ErrorListener, places: list[TopicPartition]
) -> list[TopicPartition]:
    """Return a group's positions; that the group is denied to it, a consumer says only when it is polled."""
    deadline, patience = time.monotonic() + TIMEOUT, 1.0
    while True:
        try:
            return client.committed(places, timeout=patience)
        except KafkaException as error:
            heard = client.poll(0)
            said = None if heard is None else heard.error()
            if said is not None and not is_transient(said):
                raise KafkaException(said) from error
            known = listener.refusal is not None or error.args[0].code() not in _CONSEQUENCES
            if known or time.monotonic() > deadline:
                raise
            patience *= 2


@contextmanager
def undisguised(listener: ErrorListener | None = None) -> Iterator[None]:
    """Raise a fatal error as what it is: one that comes while the client calls back is raised in disguise.

    At times the disguise says nothing; then the listener knows.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        if listener is None or listener.refusal is None:
            raise
        raise KafkaException(listener.refusal) from error


@contextmanager
def asking(what: str, listener: ErrorListener | None = None) -> Iterator[None]:
    """Turn the client's errors into ours: what was asked, what the broker said, what to do."""
    try:
        with undisguised():
            yield
    except KafkaException as error:
        raise explain(what, error.args[0], listener) from error
    except TimeoutError as error:
        raise explain(
            what, KafkaError(KafkaError._TIMED_OUT, f"no answer in {TIMEOUT:.0f} s"), listener
        ) from error


def explain(what: str, error: object, listener: ErrorListener | None = None) -> PenstockError:
    """Return the error to raise for what the broker or its client said."""
    if not isinstance(error, KafkaError):
        return LogError(f"can't {what}: {error}")
    if listener is not None and listener.refusal is not None and error.code() in _CONSEQUENCES:
        error = listener.refusal
    known = access_error(what, error, listener.user if listener else None)
    if known is not None:
        return known
    code = error.code()
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        return TopicError(f"can't {what}: the topic does not exist", hint="run `penstock topics apply`")
    if code in _WRONG_TOPIC:
        return TopicError(f"can't {what}: {error.str()}")
    if code == KafkaError._INVALID_ARG:
        return SettingsError(f"can't {what}: {error.str()}")
    if code in _UNREACHABLE:
        said = f"{error.str()} ({listener.last})" if listener and listener.last else error.str()
        return LogError(f"can't {what}: {said}", hint="is the broker up? see `penstock status`")
    return LogError(f"can't {what}: {error.str()}")
