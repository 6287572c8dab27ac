"""Redrive: a webhook's dead letters are sent to its endpoint again, once the cause is fixed."""

from dataclasses import dataclass
from datetime import UTC, datetime

from penstock.identity import Identity
from penstock.log.broker import Broker
from penstock.log.cursor import Cursor
from penstock.log.dead_letters import DeadLetter
from penstock.log.identity import TopicIdentity
from penstock.log.message import Received
from penstock.log.redrive import Redriven, WaitingLetters
from penstock.log.transactional_writer import Message
from penstock.log.writer import Writer
from penstock.settings import Settings
from penstock.targets.webhook.client import Client
from penstock.targets.webhook.delivery import Delivery, Rules
from penstock.targets.webhook.event import Event, Request
from penstock.targets.webhook.letters import event_of, letter, letters_topic
from penstock.targets.webhook.target import Webhook


def redrive_webhook(webhook: Webhook, flow: str, settings: Settings) -> Redriven:
    """Send the dead letters of a flow's webhook again, each with its id; what fails again stays one.

    `flow` is the flow's label, as in "shop.partner". Penstock commits the position in the transaction that
    keeps what fails again. A crash, or an endpoint that is down, loses no letter; up to 500 may be sent again
    by the next redrive.
    """
    topic, group = letters_topic(flow), Identity(flow).redrives
    if not Broker(settings).exists(topic):
        return Redriven(0, 0)
    client = Client(webhook.endpoint(settings), flow, webhook.timeout, webhook.connect_timeout)
    writer = Writer(settings, group)
    try:
        writer.fence()  # before the position is read: until then another redrive may move it
        with Cursor(topic, settings, group=group, archived=True) as cursor:
            letters = WaitingLetters(cursor, TopicIdentity(topic, settings, group))
            return _Redrive(webhook, flow, client, writer).run(letters)
    finally:
        client.close()
        writer.abort()


@dataclass(frozen=True)
class _Redrive:
    """Sends letters, and keeps those that fail again."""

    webhook: Webhook
    flow: str
    client: Client
    writer: Writer

    def run(self, letters: WaitingLetters) -> Redriven:
        sent = dead = repeated = 0
        seen: set[str] = set()
        for messages, position in letters.chunks():
            events = list(
                {event.id: event for event in map(_event, messages) if event.id not in seen}.values()
            )
            seen |= {event.id for event in events}
            failed = self._failed(events)
            self._keep(failed)
            letters.commit(self.writer, position)
            sent, dead = sent + len(events) - len(failed), dead + len(failed)
            repeated += len(messages) - len(events)
        return Redriven(sent, dead, repeated)

    def _failed(self, events: list[Event]) -> list[Message]:
        """Deliver events one by one, and return the letters of those that fail again."""
        webhook = self.webhook
        delivery = Delivery(
            self.client.post, Rules(webhook.retries, webhook.circuit, webhook.blame), f"of {self.flow!r}"
        )
        array = webhook.batch is not None
        settled = delivery.deliver(Request((event,), webhook.format, array) for event in events)
        return [
            letter(self.flow, each.request.events[0], each.failure, datetime.now(UTC))
            for each in settled
            if each.failure is not None
        ]

    def _keep(self, letters: list[Message]) -> None:
        """Begin a transaction with letters; the transaction is short, however long requests take."""
        producer = self.writer.begin()
        for topic, key, value, headers in letters:
            producer.send_bytes(topic, key, value, headers or [])


def _event(message: Received) -> Event:
    return event_of(DeadLetter.from_message(message))
