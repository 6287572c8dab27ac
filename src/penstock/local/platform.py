"""The platform on this machine: the local services together, and the file that says where they are."""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from penstock.errors import SettingsError
from penstock.local import cluster, fencing, jars, service
from penstock.local.cluster import Cluster, Member
from penstock.local.files import write_whole
from penstock.local.kafka import Kafka
from penstock.local.lock import held
from penstock.local.postgres import Postgres
from penstock.local.redis import Redis, is_installed
from penstock.local.service import Reporter, Service, ServiceStatus
from penstock.settings import ENDPOINTS, Settings

T = TypeVar("T")
SERVICES = ("kafka", "postgres")
"""What `penstock up` starts."""
OPTIONAL = ("redis",)  # started if they are asked for
KNOWN = (*SERVICES, *OPTIONAL)
"""All that it can start."""
_MARKER = "penstock-data"
_LOCK = "lock"
_OURS = ("logs", "flows", "running")
_LOOKS, _LOOK = 5, 0.1
_PATIENCE, _PATIENCE_OF_SEVERAL = 60.0, 180.0  # seconds: several Java processes start at once


def _silent(_: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Platform:
    """A Kafka broker and a PostgreSQL server whose data is in one folder, and a Redis if it is asked for.

    >>> Platform(Path("elsewhere"), services=("kafka",)).status()[0].state
    'stopped'

    A port that is not given is the one used last time, the usual one, or any free one; of several brokers,
    `kafka_port` is the first one's, and the others follow. `brokers` is 1 or 3, or as many as the folder has.
    `kafka_proxy` is for tests: the port of a proxy before the broker, and the port that it passes connections
    on to.
    """

    data: Path
    kafka_port: int | None = None
    postgres_port: int | None = None
    services: tuple[str, ...] = SERVICES
    kafka_proxy: tuple[int, int] | None = None
    redis_port: int | None = None
    brokers: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.data.expanduser().resolve())
        cluster.check_size(self.brokers)
        unknown = set(self.services) - set(KNOWN)
        if unknown or not self.services:
            raise SettingsError(
                f"services {self.services!r} can't be started", hint=f"known are {', '.join(KNOWN)}"
            )

    def up(self, fresh: bool = False, report: Reporter = _silent) -> Settings:
        """Start what isn't running, attach to what is, and return where they are."""
        self._claim()
        with held(self.data / _LOCK, report):
            if fresh:
                self._stop(report)
                self._empty()
            self._settle()
            return self._start(report)

    def down(self, report: Reporter = _silent) -> None:
        """Stop what `up` started; the data stays."""
        if not self.is_there:
            return
        with held(self.data / _LOCK, report):
            self._stop(report)

    def status(self) -> list[ServiceStatus]:
        """Return how each service is."""
        return [service.status(one) for one in self._described()]

    @property
    def is_there(self) -> bool:
        """Whether it was ever started in its folder; flows may have made the folder without it."""
        return (self.data / _MARKER).exists()

    def _described(self) -> list[Service]:
        known: dict[str, Sequence[Service]] = {
            "kafka": self._brokers(),
            "postgres": [Postgres(self.data, self.postgres_port)],
            "redis": [Redis(self.data, self.redis_port)],
        }
        return [one for name in self.services for one in known[name]]

    def _brokers(self) -> list[Kafka]:
        """The one broker, or all of the folder's cluster."""
        found = Cluster.read(self.data)
        if found is None:
            return [Kafka(self.data, self.kafka_port, self.kafka_proxy)]
        first = self.kafka_port
        return [
            Kafka(self.data, first and first + number, member=Member(number + 1, found))
            for number in range(found.size)
        ]

    def _settle(self) -> None:
        """Decide how many brokers there are, which holds for as long as their data does."""
        if "kafka" not in self.services:
            return
        known = cluster.remembered(self.data)
        if known is None and (self.brokers or 1) > 1:
            Cluster.make(self.brokers or 1).write(self.data)
        elif known is not None and self.brokers not in (None, known):
            raise SettingsError(
                f"{self.data} has the data of {known} broker(s), {self.brokers} asked for",
                hint="choose another folder with --data, or delete the data with --fresh",
            )
        if (found := Cluster.read(self.data)) and not self._any_broker_runs():
            self._prepare_cluster(found)

    def _any_broker_runs(self) -> bool:
        """Whether one of several runs; one that was killed a moment ago takes some time to end."""
        for _ in range(_LOOKS):
            if all(service.status(each).state != "running" for each in self._brokers()):
                return False
            time.sleep(_LOOK)
        return True

    def _prepare_cluster(self, found: Cluster) -> None:
        """Before all brokers start at once: their controllers need ports, and what was killed is fenced."""
        if not cluster.are_free(found.controllers):
            replace(found, controllers=cluster.free_ports(found.size)).write(self.data)
        brokers = self._brokers()
        if any(each.is_fencing_due for each in brokers):
            fencing.declare_dead(*(each.controller() for each in brokers))

    def _claim(self) -> None:
        """Mark the folder as ours; one that holds somebody else's files is left alone."""
        marker = self.data / _MARKER
        if marker.exists():
            return
        if self.data.exists() and (not self.data.is_dir() or any(self.data.iterdir())):
            raise SettingsError(
                f"{self.data} is not empty and was not made by penstock",
                hint="choose a new or empty folder with --data",
            )
        write_whole(marker, "The data of a local Penstock; `penstock up --fresh` empties this folder.\n")

    def _start(self, report: Reporter) -> Settings:
        described = self._described()
        self._announce_fetching(report)
        patience = _PATIENCE_OF_SEVERAL if Cluster.read(self.data) else _PATIENCE
        started = _together(described, lambda one: one.endpoint(service.start(one, report, patience)))
        found = _endpoints({one: future.result() for one, future in started if not future.exception()})
        write_whole(self.data / ENDPOINTS, json.dumps(found, indent=2) + "\n")
        for _, future in started:
            future.result()
        return Settings.load(self.data, {"PENSTOCK_DATA": str(self.data)})

    def _announce_fetching(self, report: Reporter) -> None:
        """Say why the first start takes a minute: the broker's jars come over the network."""
        if "kafka" in self.services and not jars.is_here("kafka") and not self._any_broker_runs():
            report("fetching the broker's jars (once)")

    def _stop(self, report: Reporter) -> None:
        (self.data / ENDPOINTS).unlink(missing_ok=True)
        for _, future in _together(self._described(), lambda one: service.stop(one, report)):
            future.result()

    def _empty(self) -> None:
        """What flows have kept goes too: it is about a log that is no more."""
        for folder in (*(one.folder for one in self._described()), *(self.data / name for name in _OURS)):
            if folder.exists():
                shutil.rmtree(folder)
        for file in self.data.glob("progress.db*"):
            file.unlink()
        cluster.forget(self.data)


def services_of(data: Path, wanted: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the services of a folder: the usual ones, those wanted, and those once started in it."""
    unknown = set(wanted) - set(KNOWN)
    if unknown:
        raise SettingsError(f"there is no service {min(unknown)!r}", hint=f"known are {', '.join(KNOWN)}")
    started = (name for name in OPTIONAL if name in wanted or (data / name).is_dir())
    return (*SERVICES, *started)


def installed(services: Iterable[str]) -> tuple[str, ...]:
    """Return those of some services that can be started here: Redis is a program of the system's."""
    return tuple(name for name in services if name != Redis.name or is_installed())


def _endpoints(found: Mapping[Service, object]) -> dict[str, object]:
    """Return what clients have to know of each service; of several brokers they are given all addresses."""
    endpoints: dict[str, object] = {}
    addresses: list[str] = []
    for one, endpoint in found.items():
        if isinstance(one, Kafka) and isinstance(endpoint, Mapping):
            addresses.append(str(endpoint["bootstrap.servers"]))
            endpoints["kafka"] = {**endpoint, "bootstrap.servers": ",".join(addresses)}
        else:
            endpoints[one.name] = endpoint
    return endpoints


def _together(described: Sequence[Service], work: Callable[[Service], T]) -> list[tuple[Service, Future[T]]]:
    """Do the same to all services at once and wait for all of them, also when interrupted on the way."""
    with ThreadPoolExecutor(len(described)) as pool:
        begun = [(one, pool.submit(work, one)) for one in described]
        wait([future for _, future in begun])  # if this is interrupted, leaving the block waits again
        return begun


@contextmanager
def running(
    data: Path | None = None,
    *,
    kafka_port: int | None = None,
    postgres_port: int | None = None,
    services: tuple[str, ...] = SERVICES,
    brokers: int | None = None,
) -> Iterator[Settings]:
    """Run a platform for the length of a test; without `data` in a folder that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-")) if data is None else data
    platform = Platform(folder, kafka_port, postgres_port, services, brokers=brokers)
    try:
        yield platform.up()
    finally:
        try:
            platform.down()
        finally:
            if data is None:
                shutil.rmtree(platform.data)
