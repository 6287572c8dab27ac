"""Makes the probes: bounded reads of topics, coordinators, databases, disks and processes."""

import os
import shutil
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from penstock.log import Broker, plan
from penstock.log.client import asking, metadata
from penstock.log.topic import DEAD_LETTERS
from penstock.ops.collecting import collecting
from penstock.ops.doctor.coordinators import GROUPS, TRANSACTIONS, open_transactions, rebalances
from penstock.ops.doctor.database_slots import distinct, slot_questions
from penstock.ops.doctor.declared import Declared
from penstock.ops.doctor.java_collections import Reading, read_collections, shares
from penstock.ops.doctor.probes import Difference, Disk, Held, Probes
from penstock.ops.doctor.sampling import Sampler
from penstock.ops.doctor.topic_sample import TopicSample
from penstock.ops.glance import Glance
from penstock.ops.model import System
from penstock.ops.questions import ask
from penstock.registry import Registry
from penstock.registry.topic import NAME as SCHEMAS
from penstock.settings import Secret, Settings

_PATIENCE = 20.0  # seconds for all probes
_TOPICS = 100  # that are sampled at most: those with the most events
_CLIENT = ("acks", "message.max.bytes")


def examine(
    settings: Settings, declared: Declared | None = None, wait: float = 0.0, *, sampled: bool = True
) -> tuple[System, Probes]:
    """Look at a system, twice if there is time to `wait` between, and return it with its probes.

    Without `sampled` no records of topics are read, which takes the most time.
    """
    host, earlier = socket.gethostname(), None
    before: Reading = {}
    with collecting(settings) as collector:
        if wait:
            earlier = collector.look()
            before = _collections(earlier, host)
            time.sleep(wait)
        system = collector.look()
    probing = _Probing(settings, system, declared or Declared(), host, sampled)
    return system, probing.probes(earlier, before)


def _collections(system: System, host: str) -> Reading:
    """The first of two readings; that one is missing, the second says."""
    processes = [each.process for each in system.flows]
    asked = {"collections": partial(read_collections, processes, host)}
    return ask(asked, _PATIENCE, []).get("collections", {})


class _Probing:
    """Asks all questions at once; what nobody answers is said in the probes."""

    def __init__(
        self, settings: Settings, system: System, declared: Declared, host: str, sampled: bool
    ) -> None:
        self._settings, self._system, self._declared = settings, system, declared
        self._host, self._is_sampled = host, sampled
        self._missing: list[str] = []

    def probes(self, earlier: System | None, before: Reading) -> Probes:
        questions: dict[str, Callable[[], Any]] = {"disks": self._disks}
        if self._system.topics:
            questions |= self._of_the_log()
        of_slots = slot_questions(self._settings)
        running = [each.process for each in self._system.flows if each.state == "running"]
        questions["collections"] = partial(read_collections, running, self._host)
        found = ask(questions | of_slots, _PATIENCE, self._missing)
        slots = (each for name in of_slots for each in found.get(name, ()))
        return Probes(
            earlier,
            samples=found.get("samples", {}),
            disks=found.get("disks", ()),
            transactions=found.get("transactions", ()),
            held=found.get("held", ()),
            rebalances=found.get("rebalances", ()),
            slots=distinct(slots),
            collections=shares(before, found.get("collections", {})),
            differences=found.get("differences", ()),
            declared=self._declared.flows(self._settings.namespace),
            events=self._declared.events,
            **found.get("broker", {}),
            clients=self._clients(),
            cores=os.cpu_count() or 0,
            host=self._host,
            unanswered=tuple(self._missing),
        )

    def _of_the_log(self) -> dict[str, Callable[[], Any]]:
        settings = self._settings
        there = Broker(settings).partitions([TRANSACTIONS, GROUPS])  # until they are needed, they are not
        questions: dict[str, Callable[[], Any]] = {}
        if TRANSACTIONS in there:
            questions["transactions"] = lambda: open_transactions(settings)
        if GROUPS in there:
            questions["rebalances"] = lambda: rebalances(settings)
        if self._is_sampled:
            questions["samples"] = self._samples
        return questions | {
            "held": self._held,
            "broker": self._broker,
            "differences": self._differences,
        }

    def _samples(self) -> dict[str, TopicSample]:
        with ExitStack() as opened:
            has_registry = any(each.name == SCHEMAS for each in self._system.topics)
            registry = (
                opened.enter_context(Registry(self._settings, patience="1 second")) if has_registry else None
            )
            sampler = Sampler(self._settings, registry)
            asked = {
                name: partial(sampler.sample, name, self._declared.topic(name)) for name in self._sampled()
            }
            missing: list[str] = []
            found = ask(asked, 0.9 * _PATIENCE, missing)
            self._missing += [f"sample of topic {each}" for each in missing]
            return found

    def _sampled(self) -> Iterable[str]:
        wanted = [
            each
            for each in self._system.topics
            if not each.is_internal and not each.name.endswith(DEAD_LETTERS) and each.events
        ]
        most = sorted(wanted, key=lambda each: -each.events)
        if most[_TOPICS:]:
            self._missing.append(f"samples of {len(most) - _TOPICS} topics: the {_TOPICS} largest are read")
        return [each.name for each in most[:_TOPICS]]

    def _held(self) -> tuple[Held, ...]:
        """Partitions before an open transaction, with the time of its first record."""
        places = {
            (topic.name, number): each
            for topic in self._system.topics
            for number, each in topic.partitions.items()
            if each.stable is not None and each.first <= each.stable < each.end
        }
        with Glance(self._settings, committed=False) as glance:
            found = glance.records({place: each.stable or 0 for place, each in places.items()})
        return tuple(
            Held(*place, places[place].stable or 0, places[place].end, records[0].timestamp()[1] / 1000)
            for place, records in found.items()
            if records and records[0].offset() == places[place].stable
        )

    def _broker(self) -> dict[str, Any]:
        broker = Broker(self._settings)
        with asking("list brokers", broker.listener):
            count = len(metadata(broker.admin, broker.listener).brokers)
        return {"brokers": count, "broker": broker.own_config()}

    def _differences(self) -> tuple[Difference, ...]:
        topics = [each for each in self._declared.topics if not each.is_captured]
        changes = plan(topics, Broker(self._settings)) if topics else []
        return tuple(
            Difference(each.topic, each.action, dict(each.settings), each.reason or "")
            for each in changes
            if each.action != "keep"
        )

    def _disks(self) -> tuple[Disk, ...]:
        """The file systems of the data folder and of the checkpoints, where they are on this machine."""
        folders = [self._settings.data, Path(self._settings.flows.removeprefix("file:"))]
        found: dict[int, Disk] = {}
        for folder in (each for each in folders if each.is_dir()):
            usage = shutil.disk_usage(folder)
            found.setdefault(folder.stat().st_dev, Disk(str(folder), usage.total, usage.free))
        return tuple(found.values())

    def _clients(self) -> dict[str, str]:
        given = self._settings.kafka
        return {
            name: str(given[name])
            for name in _CLIENT
            if name in given and not isinstance(given[name], Secret)
        }
