"""Three brokers of the experiment's own, which go with the run: one can be killed, others held."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from confluent_kafka.admin import AdminClient, PartitionMetadata

from penstock.errors import PenstockError
from penstock.lab.own_services import OwnServices
from penstock.lab.run import Run
from penstock.log import Broker
from penstock.settings import Settings

_TIMEOUT = 20.0


class Trio:
    """A cluster with replication 3 and min.insync.replicas 2; `settings` are its clients'."""

    def __init__(self, run: Run) -> None:
        self._brokers = OwnServices(run, ("kafka",), brokers=3)
        self.settings = Settings()
        self._admin: AdminClient | None = None

    def start(self) -> None:
        """Start what does not run."""
        self.settings = self._brokers.start()
        self._admin = self._admin or AdminClient(self.settings.client() | {"log_level": 0})

    def make(self, topic: str) -> None:
        """Make a topic with one partition."""
        Broker(self.settings).create(topic, 1, -1, {})

    def partition(self, topic: str) -> PartitionMetadata:
        """Return who leads a topic's partition, as a broker knows it: of a new one perhaps nothing yet."""
        if self._admin is None:
            raise PenstockError("the brokers were not started", hint="call start() first")
        found = self._admin.list_topics(topic, timeout=_TIMEOUT).topics[topic].partitions
        return found.get(0) or PartitionMetadata()

    def states(self) -> dict[int, str]:
        """Return how each broker is, by its number."""
        return {self._number(each.name): each.state for each in self._brokers.platform.status()}

    def kill(self, number: int) -> int:
        """Kill a broker with -9; return its process id."""
        pid = self._pids()[number]
        os.kill(pid, signal.SIGKILL)
        return pid

    @contextmanager
    def held(self, leader: int) -> Iterator[None]:
        """Hold the followers by SIGSTOP: they fetch nothing meanwhile."""
        followers = [pid for number, pid in self._pids().items() if number != leader]
        try:
            for pid in followers:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in followers:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _pids(self) -> dict[int, int]:
        return {self._number(each.name): each.pid for each in self._brokers.platform.status() if each.pid}

    def _number(self, name: str) -> int:
        return int(name.rpartition("-")[2])
