"""Publishes how the flows of a runner are, in a thread of its own: a slow broker holds no flow up."""

import logging
import os
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

from confluent_kafka import KafkaException

from penstock.errors import PenstockError
from penstock.identity import Identity
from penstock.log import Broker, Producer
from penstock.pipeline.flow_run import FlowRun
from penstock.pipeline.flow_status import FlowStatus
from penstock.settings import Settings

_LOOK, _EVERY = 0.5, 5.0  # seconds: a change of state is published at once, figures now and then
_CHECKED = 600.0  # seconds after which it is looked whether the topic is still as it was made
# A topic that was deleted is made anew with its settings: the broker would make one that is not compacted.
_KAFKA = {"message.timeout.ms": 10_000, "allow.auto.create.topics": False}
_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(16 * 1024 * 1024),
    "segment.ms": str(10 * 60 * 1000),
    "min.cleanable.dirty.ratio": "0.1",
}
_log = logging.getLogger("penstock")


class StatusPublisher:
    """Looks at runs, and writes down what it sees; a broker that refuses it is said once."""

    def __init__(self, settings: Settings, pipeline: str, runs: Iterable[FlowRun]) -> None:
        self._settings = settings
        self._topic = Identity.of(settings.namespace, pipeline, "").statuses
        self._runs = list(runs)
        self._process = f"{socket.gethostname()}/{os.getpid()}"
        self._started = time.time()
        self._said: dict[str, tuple[str, int]] = {}
        self._last = 0.0
        self._warned = False
        self._producer: Producer | None = None
        self._checked = 0.0
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="status", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Publish the last word, if the broker answers."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def _go_on(self) -> None:
        while not self._closing.wait(_LOOK):
            self._look()
        self._look()
        if self._producer is not None:
            self._producer.close()

    def _look(self) -> None:
        due = self._closing.is_set() or time.monotonic() - self._last >= _EVERY
        changed = [run for run in self._runs if due or self._said.get(_key(run)) != _state(run)]
        if due:
            self._last = time.monotonic()
        if changed:
            self._publish(changed)

    def _publish(self, runs: list[FlowRun]) -> None:
        said = {_key(run): _state(run) for run in runs}
        try:
            producer = self._opened()
            for run in runs:
                producer.send_bytes(self._topic, _key(run).encode(), self._status(run).to_json())
            producer.flush("15 seconds")
        except (PenstockError, KafkaException) as error:
            self._warn(error)
            self._let_go()
        else:
            self._said.update(said)

    def _opened(self) -> Producer:
        if self._producer is None or time.monotonic() - self._checked > _CHECKED:
            self._ensure()
        if self._producer is None:
            self._producer = Producer(self._settings, kafka=_KAFKA)
        return self._producer

    def _ensure(self) -> None:
        """Make the topic, or give one that somebody else has made its settings, if that is allowed."""
        broker = Broker(self._settings)
        broker.ensure(self._topic, 1, _CONFIG)
        with suppress(PenstockError):
            if "compact" not in broker.topic_config(self._topic).get("cleanup.policy", ""):
                broker.configure(self._topic, _CONFIG)
        self._checked = time.monotonic()

    def _let_go(self) -> None:
        """Begin anew with the next publication: the topic may be gone, and what waits is old by then."""
        if self._producer is not None:
            self._producer.client.purge()
            self._producer = None

    def _status(self, run: FlowRun) -> FlowStatus:
        job, flow, history = run.job, run.job.flow, run.history
        return FlowStatus(
            label=job.label,
            state=run.status,
            at=time.time(),
            started=self._started,
            process=self._process,
            generation=job.identity.generation,
            version=flow.version,
            mode=flow.mode,
            guarantee=flow.effective_guarantee,
            interval=flow.trigger_interval,
            reads=tuple(topic.name for topic in job.topics),
            looks_up=tuple(topic.name for topic in flow.looks_up.values()),
            writes=tuple(topic.name for topic in flow.target.topics),
            target=flow.target.title,
            restarts=run.restarts,
            troubles=tuple(run.troubles),
            batches=history.batches,
            rows=history.rows,
            late=history.late,
            malformed=history.malformed,
            latency=history.latency,
            recent=history.recent,
            phases=dict(history.phases),
            bottleneck=history.bottleneck,
            samples=history.kept(),
            shadow=job.rebuilds,
        )

    def _warn(self, error: Exception) -> None:
        """A flow works without being seen."""
        if not self._warned:
            self._warned = True
            _log.warning("the status of %s can't be published: %s", self._topic, error)


def _key(run: FlowRun) -> str:
    return run.job.identity.sink


def _state(run: FlowRun) -> tuple[str, int]:
    return run.status, run.restarts
