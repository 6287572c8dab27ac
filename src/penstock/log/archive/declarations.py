"""Where archives are written down: a topic of each, with its declaration and how it is."""

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import msgspec

from penstock.errors import ArchiveError
from penstock.log.archive.archive import Archive
from penstock.log.broker import Broker
from penstock.log.last_record import last_record
from penstock.log.producer import Producer
from penstock.settings import Settings

PREFIX = "_penstock_archive."
DECLARATION, STATE = range(2)  # the partitions of an archive's topic
_CONFIG = {"cleanup.policy": "compact", "retention.ms": "-1"}


@dataclass(frozen=True)
class State:
    """What the process that archives a topic said last; `reached` is where each partition's archive ends."""

    state: str = "added"
    process: str = ""
    at: float = 0.0
    error: str = ""
    reached: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def now(cls, state: str, reached: Mapping[int, int], error: str = "") -> Self:
        return cls(state, f"{socket.gethostname()}/{os.getpid()}", time.time(), error, reached)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)


class Declarations:
    """The archives of a cluster; a topic has one, whatever namespace its readers are in."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._broker = Broker(settings)

    def names(self) -> list[str]:
        """Return the topics that have an archive."""
        found = (name for name in self._broker.topics() if name.startswith(PREFIX))
        return sorted(name.removeprefix(PREFIX) for name in found if self._last(name, DECLARATION))

    def find(self, topic: str) -> Archive | None:
        """Return a topic's archive, if it has one."""
        own = own_topic(topic)
        found = self._last(own, DECLARATION) if self._broker.exists(own) else None
        return Archive.from_json(found) if found else None

    def get(self, topic: str) -> Archive:
        """Return a topic's archive, or say which ones there are."""
        found = self.find(topic)
        if found is None:
            known = ", ".join(self.names()) or "none"
            hint = f"archived are {known}; `penstock archive add {topic} --to …` adds one"
            raise ArchiveError(f"topic {topic!r} has no archive", hint=hint)
        return found

    def put(self, archive: Archive) -> None:
        """Write an archive down."""
        own = own_topic(archive.topic)
        self._broker.ensure(own, 2, _CONFIG)
        with Producer(self._settings) as producer:
            producer.send_bytes(own, b"declaration", archive.to_json(), partition=DECLARATION)

    def remove(self, topic: str) -> None:
        """Forget an archive; its files stay."""
        self._broker.delete(own_topic(topic))

    def state(self, topic: str) -> State:
        """Return how an archive is."""
        found = self._last(own_topic(topic), STATE)
        return msgspec.json.decode(found, type=State) if found else State()

    def _last(self, own: str, partition: int) -> bytes | None:
        return last_record(self._settings, own, partition, wait_for_open=False)


def own_topic(topic: str) -> str:
    """Return the topic in which an archive is written down."""
    return PREFIX + topic
