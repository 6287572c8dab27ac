"""Several brokers on this machine: how many there are, and what each has to know of the others."""

import base64
import json
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from penstock.errors import SettingsError
from penstock.local import ports
from penstock.local.files import write_whole

SIZES = (1, 3)  # with two, the failure of one would stop both
_FILE = "cluster.json"
# What differs from a single node: each event is on all three, and is acknowledged when two of them have it.
# Somebody takes over here, so a broker that says nothing is given up sooner.
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "16777216",
}
HEAP = "-Xms128m -Xmx384m"  # of each broker


@dataclass(frozen=True)
class Cluster:
    """The id that all brokers share, and the ports of their controllers, by their numbers."""

    id: str
    controllers: tuple[int, ...]

    @property
    def size(self) -> int:
        return len(self.controllers)

    @property
    def voters(self) -> str:
        """The controllers, as Kafka's settings have them."""
        placed = enumerate(self.controllers, 1)
        return ",".join(f"{number}@{ports.LOOPBACK}:{port}" for number, port in placed)

    @classmethod
    def read(cls, data: Path) -> Self | None:
        """Return what a folder has; None where it has one broker, or none yet."""
        try:
            found = json.loads((data / _FILE).read_text())
            return cls(str(found["id"]), tuple(int(port) for port in found["controllers"]))
        except FileNotFoundError as error:
            if (data / "kafka-1").is_dir():
                raise _unreadable(data, "it is not there") from error
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _unreadable(data, str(error)) from error

    @classmethod
    def make(cls, size: int) -> Self:
        return cls(new_id(), free_ports(size))

    def write(self, data: Path) -> None:
        write_whole(data / _FILE, json.dumps(asdict(self), indent=2) + "\n")


@dataclass(frozen=True)
class Member:
    """A broker's number in its cluster; the first one is 1."""

    number: int
    cluster: Cluster

    @property
    def controller(self) -> int:
        return self.cluster.controllers[self.number - 1]


def _unreadable(data: Path, reason: str) -> SettingsError:
    """Without its brokers, a new and empty one would take their place."""
    return SettingsError(
        f"{data / _FILE}, which says which brokers this folder has, can't be read: {reason}",
        hint="bring it back, or take another folder with --data; the data is in kafka-1 to kafka-3",
    )


def remembered(data: Path) -> int | None:
    """Return how many brokers a folder has; None if it has no data of Kafka."""
    if found := Cluster.read(data):
        return found.size
    return 1 if (data / "kafka").is_dir() else None


def check_size(brokers: int | None) -> None:
    """Refuse a number of brokers that is not offered."""
    if brokers is not None and brokers not in SIZES:
        listed = " or ".join(map(str, SIZES))
        raise SettingsError(f"brokers is {brokers}, expected {listed}", hint="three outlive the loss of one")


def forget(data: Path) -> None:
    """Let a folder have no cluster."""
    (data / _FILE).unlink(missing_ok=True)


def new_id() -> str:
    """Return an id of a cluster: 16 bytes in URL-safe base64 that must not look like an option."""
    return "P" + base64.urlsafe_b64encode(secrets.token_bytes(16)).decode()[1:22]


def free_ports(count: int) -> tuple[int, ...]:
    """Return different ports that nobody uses."""
    found: list[int] = []
    while len(found) < count:
        if (port := ports.any_free()) not in found:
            found.append(port)
    return tuple(found)


def are_free(wanted: Sequence[int]) -> bool:
    """Say whether servers could listen on all of these ports now."""
    return all(ports.is_free(port) for port in wanted)
