"""Three brokers of the experiment's own, in a folder that is removed: one can be killed, others held."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka.admin import AdminClient, PartitionMetadata

from penstock.errors import PenstockError
from penstock.local import Platform
from penstock.log import Broker
from penstock.settings import Settings

_TIMEOUT = 20.0


class Trio:
    """A cluster with replication 3 and min.insync.replicas 2; `settings` are its clients'."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-lab-"))
        self._platform = Platform(self._folder / "data", services=("kafka",), brokers=3)
        self.settings = Settings()
        self._admin: AdminClient | None = None

    def start(self) -> None:
        """Start what does not run."""
        self.settings = self._platform.up()
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
        return {self._number(each.name): each.state for each in self._platform.status()}

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

    def remove(self) -> None:
        """End all brokers and remove their data, which nobody needs any more."""
        for pid in self._pids().values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._platform.down()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pids(self) -> dict[int, int]:
        return {self._number(each.name): each.pid for each in self._platform.status() if each.pid}

    def _number(self, name: str) -> int:
        return int(name.rpartition("-")[2])
