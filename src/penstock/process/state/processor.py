"""What Spark runs for buckets of keys: it declares the state, and unpickles its work when rows come.

Spark starts a worker only to ask what state there is, for every step of every query: such a worker needs
neither frames nor steps, and imports nothing but this.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from pyspark.cloudpickle import dumps
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)


class Work(Protocol):
    """What is done with the packed rows of buckets; it returns rows packed likewise."""

    @property
    def values(self) -> Mapping[str, str]:
        """The values that are kept of a bucket, by their names: what Spark calls their schema."""

    @property
    def maps(self) -> Mapping[str, tuple[str, str]]:
        """The maps that are kept of a bucket: the schemas of their keys and values."""

    def open(self, handle: StatefulProcessorHandle, states: Mapping[str, Any]) -> None:
        """Begin with a task: timers are asked for by the handle."""

    def take(self, bucket: int, rows: Sequence[bytes], watermark: int) -> list[bytes]:
        """Take the rows of a bucket; the watermark is in milliseconds, or -1 in a batch query."""

    def wake(self, bucket: int, watermark: int) -> list[bytes]:
        """Do what is due at a bucket's timer."""


class Processor(StatefulProcessor):
    """Runs work in Spark, and puts out what it returns in a column of a name."""

    def __init__(self, name: str, work: Work) -> None:
        self._name = name
        self._values = dict(work.values)
        self._maps = dict(work.maps)
        self._pickled: bytes = dumps(work)  # type: ignore[no-untyped-call]

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        values = {name: handle.getValueState(name, schema) for name, schema in self._values.items()}
        maps = {name: handle.getMapState(name, *schemas) for name, schemas in self._maps.items()}
        self._states = values | maps
        self._work: Work | None = None

    def handleInputRows(
        self, key: tuple[int], rows: Iterator[Any], timerValues: TimerValues
    ) -> Iterator[Any]:
        packed = [each for frame in rows for each in frame["rows"]]
        yield from self._written(self._opened().take(key[0], packed, timerValues.getCurrentWatermarkInMs()))

    def handleExpiredTimer(
        self,
        key: tuple[int],
        timerValues: TimerValues,
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002
    ) -> Iterator[Any]:
        yield from self._written(self._opened().wake(key[0], timerValues.getCurrentWatermarkInMs()))

    def close(self) -> None:
        pass

    def _opened(self) -> Work:
        if self._work is None:
            work: Work = pickle.loads(self._pickled)  # noqa: S301
            work.open(self._handle, self._states)
            self._work = work
        return self._work

    def _written(self, packed: list[bytes]) -> Iterator[Any]:
        import pandas as pd  # type: ignore[import-untyped]  # here: it takes half a second

        if packed:
            yield pd.DataFrame({self._name: packed})


def set_timer(handle: StatefulProcessorHandle, timer: int | None) -> None:
    """Let a bucket be woken at one time, in microseconds, and at no other."""
    wanted = {-(-timer // 1000)} if timer is not None else set()
    there = set(handle.listTimers())
    for time in there - wanted:
        handle.deleteTimer(time)
    for time in wanted - there:
        handle.registerTimer(time)
