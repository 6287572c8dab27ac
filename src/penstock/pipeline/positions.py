"""How far flows have read, published as consumer groups, so that every Kafka tool sees their lag."""

import logging
import threading
import time

from confluent_kafka import KafkaException

from penstock.errors import ConfigurationError, PenstockError
from penstock.log import Groups
from penstock.log.ledger import Offsets

_EVERY = 0.5
_REFRESHED_EVERY = 3600.0  # Kafka forgets the positions of a group that has not moved for a week
_log = logging.getLogger("penstock")


class Positions:
    """Publishes in a thread of its own: a broker that does not answer must not hold up a batch."""

    def __init__(self, groups: Groups) -> None:
        self._groups = groups
        self._due: dict[str, Offsets] = {}
        self._last: dict[str, Offsets] = {}
        self._every: dict[str, float] = {}
        self._warned: set[str] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._publish_all, name="positions", daemon=True)
        self._thread.start()

    def reached(self, group: str, offsets: Offsets, every: float) -> None:
        """Remember where a flow stands, to be published soon; its batches end every so many seconds."""
        with self._lock:
            self._due[group] = self._last[group] = offsets
            self._every[group] = every

    def close(self) -> None:
        """Publish what is left, if the broker answers."""
        self._closing.set()
        self._thread.join(30)

    def _publish_all(self) -> None:
        refreshed = time.monotonic()
        while not self._closing.wait(_EVERY):
            if time.monotonic() - refreshed > _REFRESHED_EVERY:
                refreshed = time.monotonic()
                with self._lock:
                    self._due = {**self._last, **self._due}
            self._publish()
        self._publish()

    def _publish(self) -> None:
        with self._lock:
            due, self._due = self._due, {}
        for group, offsets in due.items():
            try:
                self._groups.place(group, offsets, self._every[group])
            except ConfigurationError as error:
                self._warn(group, error)
            except (PenstockError, KafkaException):  # a client may not even be made
                with self._lock:  # it is tried again, unless the flow has gone on meanwhile
                    self._due.setdefault(group, offsets)

    def _warn(self, group: str, error: ConfigurationError) -> None:
        """A flow works without its positions being seen, so that they are missed is said once."""
        if group not in self._warned:
            self._warned.add(group)
            _log.warning("the lag of %s can't be seen: %s", group, error)
