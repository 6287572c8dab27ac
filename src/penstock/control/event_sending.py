"""Sends an event to a topic, as an application would."""

from dataclasses import dataclass
from typing import Any

from penstock.control.action import Outcome
from penstock.events import Event
from penstock.log import Broker, Producer, Topic
from penstock.registry import Registry
from penstock.settings import Settings


@dataclass(frozen=True)
class EventSending:
    """An event that is made and checked already; the topic has to be there."""

    topic: Topic[Any]
    event: Event

    name = "topic.send"

    @property
    def subject(self) -> str:
        return f"{self.topic.name} {self.event.id}"

    def preview(self, settings: Settings) -> Outcome:
        Broker(settings).topic(self.topic.name)
        return Outcome(f"an event would be written to {self.topic.name}, key {self._key()!r}")

    def act(self, settings: Settings) -> Outcome:
        Broker(settings).topic(self.topic.name)
        if self.topic.is_registered:
            with Registry(settings) as registry, Producer(settings, schemas=registry) as producer:
                producer.send(self.topic, self.event)
        else:
            with Producer(settings) as producer:
                producer.send(self.topic, self.event)
        return Outcome(f"written to {self.topic.name}, id {self.event.id}")

    def _key(self) -> str:
        found = self.topic.key_of(self.event)
        return "" if found is None else found.decode(errors="backslashreplace")
