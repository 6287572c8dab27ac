"""The contract of lanes finds what is wrong: a lane that is not atomic, and one that fences nobody."""

import pyarrow as pa
import pytest

from penstock.log.ledger import Entry
from penstock.testing.lane_contract import LaneContract


class Store:
    """A store in memory; `atomic` and `fenced` say what its lanes are."""

    kind = "memory"

    def __init__(self, *, atomic=True, fenced=True):
        self.atomic, self.fenced = atomic, fenced
        self.rows, self.entry, self.writer = [], Entry(), 0

    def prepare(self, wanted):
        return 1

    def read(self):
        return (self.entry,)

    def open(self, number):
        self.writer += 1
        return Lane(self, self.writer)


class ShutOutError(Exception):
    pass


class Lane:
    def __init__(self, store, writer):
        self.store, self.writer, self.entry = store, writer, store.entry

    def write(self, rows, entry):
        if self.store.fenced and self.writer != self.store.writer:
            raise ShutOutError
        new = [] if self.store.atomic else self.store.rows
        for batch in rows:
            new += batch.column("n").to_pylist()
        if self.store.atomic:
            self.store.rows += new
        self.store.entry = entry

    def close(self):
        pass


class Contract(LaneContract):
    errors = (ShutOutError,)

    def __init__(self, store):
        self.store = store

    def batch(self, numbers):
        return pa.RecordBatch.from_pydict({"n": list(numbers)})

    def contents(self):
        return self.store.rows


SUITE = [name for name in vars(LaneContract) if name.startswith("test_")]


@pytest.mark.parametrize("name", SUITE)
def test_a_right_store_passes(name):
    store = Store()
    getattr(Contract(store), name)(store)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"atomic": False}, "test_rows_that_break_off_leave_neither_rows_nor_entry"),
        ({"fenced": False}, "test_whoever_opens_a_lane_sees_all_that_its_last_writer_has_written"),
    ],
)
def test_a_wrong_one_is_found(wrong, name):
    store = Store(**wrong)
    with pytest.raises(AssertionError):
        getattr(Contract(store), name)(store)
