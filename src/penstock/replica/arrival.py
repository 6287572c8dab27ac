"""Waiting until a copy has come to a place in the source's log."""

import time
from collections.abc import Callable

from penstock.capture import Capture, Store
from penstock.capture.slot import Source
from penstock.errors import TryAgainError
from penstock.log import Broker
from penstock.replica.ledger import Ledger
from penstock.settings import Settings

_PAUSE = 0.1


class Arrival:
    """Knows how far capture and replica are, and waits for them, for `patience` seconds at most."""

    def __init__(
        self, settings: Settings, capture: Capture, source: Source, ledger: Ledger, patience: float
    ) -> None:
        self._store, self._broker = Store(settings), Broker(settings)
        self._capture, self._source, self._ledger, self._patience = capture, source, ledger, patience

    def wait(self) -> None:
        """Wait until all that is committed in the source now is in the copy."""
        row = self._source.connection.execute("select (pg_current_wal_insert_lsn() - '0/0')::int8").fetchone()
        here = int(str(row[0])) if row else 0
        self._source.heartbeat()
        self._until(
            lambda: self._is_captured(here), "the capture", f"penstock capture run {self._capture.name}"
        )
        ends = {topic: self._ends(topic) for topic in map(self._capture.topic, self._capture.tables)}
        self._until(lambda: self._is_applied(ends), "the replica", "penstock replica run")

    def _is_captured(self, lsn: int) -> bool:
        found = self._store.position(self._capture.name)
        return found is not None and found.lsn >= lsn and not found.pending and not found.requests

    def _ends(self, topic: str) -> dict[int, int]:
        """With what was committed just now and is not marked so yet."""
        return {partition: end for partition, (_, end) in self._broker.offsets(topic).items()}

    def _is_applied(self, ends: dict[str, dict[int, int]]) -> bool:
        places = self._ledger.places()
        return all(
            topic in places and places[topic].offsets.get(partition, 0) >= end
            for topic, each in ends.items()
            for partition, end in each.items()
        )

    def _until(self, is_so: Callable[[], bool], who: str, command: str) -> None:
        deadline = time.monotonic() + self._patience
        while not is_so():
            if time.monotonic() > deadline:
                raise TryAgainError(
                    f"{who} has not come in {self._patience:.0f} s to where the source was looked at",
                    hint=f"does `{command}` run? give it more time with --patience",
                )
            time.sleep(_PAUSE)
