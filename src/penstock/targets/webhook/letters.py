"""Dead letters of a webhook: events that were given up, complete, with what the endpoint said."""

from datetime import datetime

from penstock.identity import Identity
from penstock.log.broker import Broker
from penstock.log.dead_letters import DeadLetter
from penstock.log.transactional_writer import Message
from penstock.process.wire.messages import MADE_BY
from penstock.settings import Settings
from penstock.targets.webhook.delivery import Failure
from penstock.targets.webhook.event import Event

PREFIX = "penstock.webhook."


def letters_topic(sink: str) -> str:
    """Return the topic of a flow's dead letters.

    >>> letters_topic("shop.partner")
    '_penstock_dead-letters.shop.partner'
    """
    return Identity(sink).undelivered


def ensure_letters(settings: Settings, sink: str) -> None:
    """Make the topic before anything is sent: what can't be kept later is not to be given up."""
    Broker(settings).ensure(letters_topic(sink), 1, {"retention.ms": "-1"})


def letter(sink: str, event: Event, failure: Failure, at: datetime) -> Message:
    """Return the dead letter of an event."""
    answer = failure.answer
    own = {
        "id": event.id,
        "status": "" if answer.status is None else str(answer.status),
        "response": answer.text,
        "attempts": str(failure.attempts),
    }
    described = DeadLetter(
        event.topic or sink,
        -1 if event.partition is None else event.partition,
        -1 if event.offset is None else event.offset,
        f"the webhook {answer.said}",
        at,
        key=None if event.key is None else event.key.encode(),
        value=event.body.encode(),
        headers=((MADE_BY, sink.encode()), *((PREFIX + name, text.encode()) for name, text in own.items())),
    )
    return (letters_topic(sink), described.key, described.value, described.to_headers())


def event_of(dead: DeadLetter) -> Event:
    """Return the event of a dead letter."""
    own = dict(dead.headers)
    known = dead.offset >= 0
    return Event(
        own.get(PREFIX + "id", b"").decode(),
        None if dead.key is None else dead.key.decode(),
        (dead.value or b"").decode(),
        dead.topic if known else None,
        dead.partition if known else None,
        dead.offset if known else None,
    )
