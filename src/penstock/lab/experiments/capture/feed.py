"""The capture at work: the table's changes as records of a topic, until the experiment ends."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Event

from penstock.capture import Capture, Runner, Store, Wishes
from penstock.lab.crew import Crew
from penstock.lab.run import Run
from penstock.log import Broker
from penstock.log.message import Received

_LOOK = 0.05


@dataclass(frozen=True)
class Change:
    """A change as the topic has it: the row after it, and when PostgreSQL committed it (seconds)."""

    id: int
    version: int
    name: str
    price: str
    committed: float
    is_snapshot: bool


class Feed:
    """Declares and runs a capture of one table; its slot, publication, position and topic go with the run."""

    def __init__(self, run: Run, table: str) -> None:
        self._run, self._store = run, Store(run.settings)
        self._capture = Capture(f"lab_{run.id}", tables=(table,), prefix=f"lab.capture.{run.id}")
        self.topic = self._capture.topic(table)
        run.claim(self._store.topic(self._capture.name))
        namespace = run.settings.namespace
        run.slot(self._capture.slot_name(namespace), self._capture.publication_name(namespace))

    def start(self, crew: Crew) -> None:
        """Run the capture in a thread, and wait until the rows that are there are in the topic."""
        self._store.put(self._capture)
        crew.start("capture", self._work)
        broker = Broker(self._run.settings)
        while not broker.exists(self.topic) or not any(broker.committed_end(self.topic).values()):
            crew.check()
            self._run.rest(_LOOK)

    def _work(self, stopped: Event) -> None:
        wishes = Wishes(stopped=stopped, readers=1)
        Runner(self._run.settings, self._capture.name, wishes, log=self._run.report).run()


def changes(messages: list[Received]) -> Iterator[Change]:
    """Yield what records in Debezium's envelope say; nobody deletes a row here."""
    for each in messages:
        value = json.loads(each.value() or b"{}")
        row, source = value.get("after"), value.get("source", {})
        if row:
            is_snapshot = value["op"] == "r"
            committed = source["ts_us"] / 1e6
            yield Change(row["id"], row["version"], row["name"], row["price"], committed, is_snapshot)
