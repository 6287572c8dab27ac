"""What every lane has to pass, below its sink: rows and entry together or neither, and one writer at a time.

    class TestMyLanes(LaneContract):
        def make_lanes(self, settings, unique): ...
        def batch(self, numbers): ...
        def contents(self): ...

It is for pytest, with fixtures `settings` and `unique` (a name that no other test has).
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import ClassVar

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.log.ledger import Entry
from penstock.settings import Settings
from penstock.targets import Lane, Lanes
from penstock.testing.sink_contract import Crash, batch

FIRST, SECOND = batch(0, 0, 10), batch(1, 10, 20)


class LaneContract:
    """The suite. `errors` are what a lane may raise when it is shut out, besides our own."""

    errors: ClassVar[tuple[type[BaseException], ...]] = ()

    def make_lanes(self, settings: Settings, unique: str) -> Lanes:
        """Return lanes that are not prepared; calls with the same `unique` give the same lanes."""
        raise NotImplementedError

    def batch(self, numbers: Iterable[int]) -> pa.RecordBatch:
        """Return rows for a lane, one for each number."""
        raise NotImplementedError

    def contents(self) -> Iterable[int]:
        """Return the numbers that a reader of the target sees, each as often as it is there."""
        raise NotImplementedError

    @pytest.fixture
    def lanes(self, settings: Settings, unique: str) -> Lanes:
        made = self.make_lanes(settings, unique)
        made.prepare(1)
        return made

    def put(self, lanes: Lanes, numbers: Iterable[int], entry: Entry) -> None:
        lane = lanes.open(0)
        try:
            lane.write([self.batch(numbers)], entry)
        finally:
            lane.close()

    def test_what_is_written_is_there_with_its_entry(self, lanes: Lanes) -> None:
        self.put(lanes, range(10), Entry(1, FIRST))
        lane = lanes.open(0)
        assert lane.entry == Entry(1, FIRST)
        lane.close()
        assert [entry for entry in lanes.read() if entry.batch] == [Entry(1, FIRST)]
        assert sorted(self.contents()) == list(range(10))

    def test_rows_that_break_off_leave_neither_rows_nor_entry(self, lanes: Lanes) -> None:
        """As when a task dies in the midst of its rows."""
        self.put(lanes, range(10), Entry(1, FIRST))

        def broken() -> Iterator[pa.RecordBatch]:
            yield self.batch(range(10, 15))
            raise Crash("in the midst of the rows")

        lane = lanes.open(0)
        with pytest.raises(Crash):
            lane.write(broken(), Entry(1, SECOND))
        lane.close()
        assert sorted(self.contents()) == list(range(10))
        assert self._entry(lanes) == Entry(1, FIRST)
        self.put(lanes, range(10, 20), Entry(1, SECOND))
        assert sorted(self.contents()) == list(range(20))

    def test_whoever_opens_a_lane_sees_all_that_its_last_writer_has_written(self, lanes: Lanes) -> None:
        """Either the new one waits for the old one to close, or the old one can't write any more."""
        old, seen = lanes.open(0), list[Lane]()
        opening = threading.Thread(target=lambda: seen.append(lanes.open(0)), daemon=True)
        opening.start()
        opening.join(2)
        with suppress(PenstockError, *self.errors):
            old.write([self.batch(range(10))], Entry(1, FIRST))
        old.close()
        opening.join(60)
        assert seen, "the lane can't be opened after its last writer has closed it"
        new = seen[0]
        written = sorted(self.contents()) == list(range(10))
        assert (new.entry.batch == FIRST) == written, "rows were written behind the back of a new writer"
        new.write([] if written else [self.batch(range(10))], Entry(2, FIRST))
        new.close()
        assert sorted(self.contents()) == list(range(10))
        assert self._entry(lanes) == Entry(2, FIRST)

    def test_a_lane_writes_more_than_once(self, lanes: Lanes) -> None:
        lane = lanes.open(0)
        lane.write([], Entry(1))
        lane.write([self.batch(range(10))], Entry(1, FIRST))
        lane.close()
        assert sorted(self.contents()) == list(range(10))
        assert self._entry(lanes) == Entry(1, FIRST)

    def _entry(self, lanes: Lanes) -> Entry:
        lane = lanes.open(0)
        try:
            return lane.entry
        finally:
            lane.close()
