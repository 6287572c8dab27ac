"""The clients of the log that routes share: each is made when it is first needed."""

import threading
from datetime import timedelta
from functools import cached_property
from typing import Any

from penstock.errors import TopicError
from penstock.gateway.delivery import Delivery
from penstock.gateway.shards import Shards
from penstock.log import Broker, Topic
from penstock.registry import Registry
from penstock.schemas import Codec
from penstock.settings import Settings


class Clients:
    """What the gateway talks to the broker with; it may start before the broker does."""

    def __init__(self, settings: Settings, keep: timedelta) -> None:
        self.settings, self._keep = settings, keep
        self._codecs: dict[str, Codec[Any]] = {}
        self._there: set[str] = set()
        self._lock = threading.Lock()

    @cached_property
    def delivery(self) -> Delivery:
        return Delivery(self.settings)

    @cached_property
    def shards(self) -> Shards:
        return Shards(self.settings, self._keep)

    @cached_property
    def broker(self) -> Broker:
        return Broker(self.settings)

    @cached_property
    def registry(self) -> Registry:
        return Registry(self.settings)

    def codec(self, topic: Topic[Any]) -> Codec[Any]:
        """Return the codec of a topic; one whose messages name their schema asks the broker."""
        with self._lock:
            if topic.name not in self._codecs:
                schemas = self.registry if topic.is_registered else None
                self._codecs[topic.name] = topic.codec(schemas)
            return self._codecs[topic.name]

    def check_there(self, name: str) -> None:
        """Refuse a topic that is declared and was not made; librdkafka would wait for it."""
        if name not in self._there and name not in self.broker.partitions([name]):
            raise TopicError(f"topic {name!r} does not exist", hint="run `penstock topics apply`")
        self._there.add(name)

    def close(self) -> None:
        """Finish what was begun, and let go."""
        for name in ("shards", "delivery", "registry"):
            made: Any = self.__dict__.get(name)
            if made is not None:
                made.close()
