"""A sink of lanes, over lanes in memory: what is opened is closed, and who was taken over writes nothing."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.errors import FencedError, SinkError
from penstock.log.ledger import Batch, Entry
from penstock.settings import Settings
from penstock.targets import LaneSink, SinkOptions
from penstock.targets.lanes import LaneWork

FIRST = Batch("c", 0, {}, {"log": {0: 10}})


class Store:
    """Lanes that are fenced by a look at the entry when they are opened, as those behind a lock are."""

    kind = "memory"

    def __init__(self, count=3, broken=None):
        self.count, self.broken = count, broken
        self.entries, self.rows, self.open_lanes = [Entry()] * count, [], 0
        self.between = lambda: None

    def prepare(self, wanted):
        return self.count

    def read(self):
        return tuple(self.entries)

    def open(self, number):
        if number == self.broken:
            raise SinkError("it does not answer")
        self.open_lanes += 1
        return Lane(self, number)


class Lane:
    def __init__(self, store, number):
        self.store, self.number, self.entry = store, number, store.entries[number]

    def write(self, rows, entry):
        self.store.rows += rows
        self.store.entries[self.number] = entry
        self.store.between()

    def close(self):
        self.store.open_lanes -= 1


def sink(store, **options):
    return LaneSink(store, SinkOptions(Settings(), "f", **options))


def test_what_was_opened_is_closed_where_another_lane_fails():
    store = Store(broken=2)
    with pytest.raises(SinkError, match="does not answer"):
        sink(store).open()
    assert store.open_lanes == 0


def test_all_lanes_are_claimed_and_closed():
    store = Store()
    assert [entry.epoch for entry in sink(store).open()] == [1, 1, 1]
    assert [entry.epoch for entry in sink(store).open()] == [2, 2, 2]
    assert store.open_lanes == 0


def test_who_takes_the_ledger_over_shuts_the_writer_of_before_out():
    store = Store()
    before = sink(store)
    before.open()
    assert [entry.epoch for entry in sink(store).take_over()] == [2, 2, 2]
    with pytest.raises(FencedError):
        before._work(FIRST, ("id",)).write(0, ())
    assert store.entries == [Entry(2)] * 3


class Locked(Store):
    """Lanes that are held by whoever has them open; the later ones of the first opener come slowly."""

    def __init__(self, count):
        super().__init__(count)
        self.locks = [threading.Lock() for _ in range(count)]

    def open(self, number):
        if number and threading.current_thread().name.endswith("_0"):
            time.sleep(0.05)
        assert self.locks[number].acquire(timeout=10), "the openers wait for each other"
        return LockedLane(self, number)


class LockedLane(Lane):
    def close(self):
        self.store.locks[self.number].release()


def test_two_who_open_at_once_do_not_wait_for_each_other_for_ever():
    store = Locked(4)
    with ThreadPoolExecutor(2) as pool:
        opened = [each.result() for each in [pool.submit(sink(store).open) for _ in range(2)]]
    assert sorted({entry.epoch for entries in opened for entry in entries}) == [1, 2]
    assert {entry.epoch for entry in store.entries} == {2}


def test_a_sink_that_is_not_open_takes_nothing_in():
    with pytest.raises(SinkError, match="not open"):
        sink(Store()).write(None, FIRST)


def test_at_most_once_a_writer_that_was_taken_over_between_entry_and_rows_writes_nothing():
    store = Store(1)
    work = LaneWork(store, "f", 1, FIRST, "at-most-once", ())

    def take_over():
        store.between = lambda: None
        store.entries[0] = Entry(2, store.entries[0].batch)

    store.between = take_over
    with pytest.raises(FencedError):
        work.write(0, ["row"])
    assert store.rows == []
    assert store.entries == [Entry(2, FIRST)]


def test_a_batch_is_written_once_by_each_guarantee():
    for guarantee in ("exactly-once", "at-least-once", "at-most-once"):
        store = Store(1)
        work = LaneWork(store, "f", 1, FIRST, guarantee, ())
        for _ in range(2):
            work.write(0, ["row"])
        assert store.rows == ["row"]
        assert store.open_lanes == 0
