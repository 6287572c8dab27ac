"""A look at the whole system: every question is asked, and what nobody answers is said."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from penstock.archive.status import status as archive_status
from penstock.capture.status import status as capture_status
from penstock.identity import Identity
from penstock.local import Platform, ServiceStatus, services_of
from penstock.log import Broker
from penstock.log.archive.declarations import PREFIX as ARCHIVES
from penstock.ops.databases import databases
from penstock.ops.dead_letter_statuses import dead_letter_statuses
from penstock.ops.group_statuses import GroupQuestion
from penstock.ops.lag.archived import Archives
from penstock.ops.lag.commit_log import CommitLog
from penstock.ops.lag.lags import Lags
from penstock.ops.lag.share_log import ShareLog
from penstock.ops.model import System, TopicStatus
from penstock.ops.questions import ask
from penstock.ops.queue_statuses import QueueQuestion
from penstock.ops.topic_statuses import topic_statuses
from penstock.pipeline.flow_status import flow_statuses
from penstock.replica.status import ReplicaStatus
from penstock.replica.status import statuses as replica_statuses
from penstock.settings import Settings

_PATIENCE, _LONG_PATIENCE = 6.0, 12.0  # seconds: until the broker answers at all, and for all else
Question = Callable[[], Any]


class Collector:
    """Looks at a system again and again: its clients stay connected, and commits are read once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._commits, self._queues = CommitLog(settings), ShareLog(settings)
        self._broker: Broker | None = None

    def look(self) -> System:
        """Return how everything is now; what can't be asked is in `unanswered`."""
        now, missing = time.time(), list[str]()
        at_once: dict[str, Question] = {"services": self._services, "topics": lambda: self._topics(missing)}
        first = ask(at_once, _PATIENCE, missing)
        topics: tuple[TopicStatus, ...] | None = first.get("topics")
        if topics is None:  # a client that was refused once keeps to it
            self._broker = None
        replicas = self._replicas()
        questions: dict[str, Question] = {**replicas}
        if topics is not None:
            questions |= self._of_the_log(topics, now, missing)
        found = ask(questions, _LONG_PATIENCE, missing)
        return System(
            at=now,
            services=first.get("services", ()),
            topics=topics or (),
            groups=(*found.get("groups", ()), *found.get("queues", ())),
            flows=found.get("flows", ()),
            captures=found.get("captures", ()),
            replicas=tuple(each for name in replicas for each in found.get(name, ())),
            archives=found.get("archives", ()),
            dead_letters=found.get("dead letters", ()),
            unanswered=tuple(missing),
        )

    def close(self) -> None:
        self._commits.close()
        self._queues.close()

    def _of_the_log(
        self, topics: tuple[TopicStatus, ...], now: float, missing: list[str]
    ) -> dict[str, Question]:
        settings, names = self._settings, [each.name for each in topics]
        by_name = {each.name: each for each in topics}
        lags = Lags(settings, self._opened(), by_name, now)
        archives = Archives(settings, frozenset(_archived(names)))
        return {
            "groups": GroupQuestion(lags, self._commits, archives, missing).answer,
            "queues": QueueQuestion(lags, self._queues).answer,
            "flows": lambda: tuple(flow_statuses(settings, names, missing)),
            "captures": lambda: _each(capture_status, settings, "capture", self._captures(names), missing),
            "archives": lambda: _each(archive_status, settings, "archive", _archived(names), missing),
            "dead letters": lambda: dead_letter_statuses(settings, topics, missing),
        }

    def _opened(self) -> Broker:
        if self._broker is None:
            self._broker = Broker(self._settings)
        return self._broker

    def _topics(self, missing: list[str]) -> tuple[TopicStatus, ...]:
        return topic_statuses(self._opened(), missing)

    def _services(self) -> tuple[ServiceStatus, ...]:
        """Those on this machine, unless the log is elsewhere and nothing was ever started here."""
        data = self._settings.data
        platform = Platform(data, services=services_of(data))
        if "bootstrap.servers" in self._settings.kafka and not platform.is_there:
            return ()
        return tuple(platform.status())

    def _captures(self, names: Iterable[str]) -> list[str]:
        mark = Identity.of_capture(self._settings.namespace, "").ledger
        return [name.removeprefix(mark) for name in names if name.startswith(mark)]

    def _replicas(self) -> dict[str, Callable[[], list[ReplicaStatus]]]:
        """A question for each database of PostgreSQL that the settings know."""
        known = databases(self._settings)
        return {
            f"replicas in {name or 'postgres'}": partial(replica_statuses, self._settings, name)
            for name in known
        }


@contextmanager
def collecting(settings: Settings) -> Iterator[Collector]:
    """Look at a system for a while."""
    collector = Collector(settings)
    try:
        yield collector
    finally:
        collector.close()


def look(settings: Settings) -> System:
    """Return everything that is known of a system now."""
    with collecting(settings) as collector:
        return collector.look()


def _each(
    status: Callable[[Settings, str], Any],
    settings: Settings,
    kind: str,
    names: list[str],
    missing: list[str],
) -> tuple[Any, ...]:
    """Ask for the status of each of some things, all at once."""
    asked = {f"{kind} {name}": partial(status, settings, name) for name in names}
    return tuple(ask(asked, _LONG_PATIENCE, missing).values())


def _archived(names: Iterable[str]) -> list[str]:
    return [name.removeprefix(ARCHIVES) for name in names if name.startswith(ARCHIVES)]
