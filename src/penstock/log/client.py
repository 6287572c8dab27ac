"""What every Kafka client of ours has in common: its settings, and an ear for its complaints."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import LogError, PenstockError, TopicError
from penstock.settings import Settings

T = TypeVar("T")
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
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_WRONG_TOPIC = (KafkaError.INVALID_CONFIG, KafkaError.INVALID_PARTITIONS, KafkaError.TOPIC_ALREADY_EXISTS)


class Ear:
    """Keeps what a client says in the background, so that an error can tell the cause.

    A client that is refused goes on trying in silence; `refusal` is set when trying again is no use.
    """

    def __init__(self) -> None:
        self.last: str | None = None
        self.refusal: str | None = None

    def __call__(self, error: KafkaError) -> None:
        self.last = error.str()
        if error.fatal() or error.code() in _REFUSED:
            self.refusal = error.str()


def configuration(
    settings: Settings, own: Mapping[str, Any], demanded: Mapping[str, Any], ear: Ear
) -> dict[str, Any]:
    """Return a client's configuration: the user's settings win over our own, but not over what we demand."""
    # librdkafka's own lines on stderr would be a second, cruder voice: errors are raised instead.
    return {"log_level": 0} | dict(own) | settings.client() | dict(demanded) | {"error_cb": ear}


def passes(error: KafkaError) -> bool:
    """Say whether the client goes on trying by itself, so that there is nothing to tell."""
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


@contextmanager
def asking(what: str, ear: Ear | None = None) -> Iterator[None]:
    """Turn the client's errors into ours: what was asked, what the broker said, what to do."""
    try:
        yield
    except KafkaException as error:
        raise explain(what, error.args[0], ear) from error
    except TimeoutError as error:
        said = ear.last if ear and ear.last else f"no answer in {TIMEOUT:.0f} s"
        raise LogError(f"can't {what}: {said}", hint="is the broker up? `penstock status` tells") from error


def explain(what: str, error: Any, ear: Ear | None = None) -> PenstockError:
    """Return the error to raise for what the broker or its client said."""
    if not isinstance(error, KafkaError):
        return LogError(f"can't {what}: {error}")
    code = error.code()
    if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
        return TopicError(f"can't {what}: the topic does not exist", hint="run `penstock topics apply`")
    if code in _WRONG_TOPIC:
        return TopicError(f"can't {what}: {error.str()}")
    if code in _UNREACHABLE:
        said = f"{error.str()} ({ear.last})" if ear and ear.last else error.str()
        return LogError(f"can't {what}: {said}", hint="is the broker up? `penstock status` tells")
    return LogError(f"can't {what}: {error.str()}")
