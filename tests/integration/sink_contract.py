"""What every sink has to pass; a subclass says how to make one, fill it and read what it holds."""

from typing import ClassVar

import pytest
from pyspark.sql import functions as F

from penstock import points
from penstock.errors import FencedError, LedgerError, SinkError
from penstock.log.ledger import Batch


class Crash(Exception):
    """The process would be dead at this point."""


def crash_at(monkeypatch, wanted):
    """Let the driver die when it passes a point; executors are not concerned."""

    def sent(_, line):
        if line.split()[1] == wanted:
            raise Crash(wanted)

    monkeypatch.setenv(points.VARIABLE, "nobody listens")
    monkeypatch.setattr(points, "_send", sent)


def batch(number, start, end, checkpoint="first"):
    """A batch of the log's one partition from an offset to another."""
    return Batch(checkpoint, number, {"log": {0: start}}, {"log": {0: end}})


def numbered(spark, numbers):
    """A row for each number, made in Java: rows that come from Python take half a second each time."""
    return spark.range(1).select(F.explode(F.lit(list(numbers)).cast("array<int>")).alias("id"))


# None of these may come after batches 0 and 1, which end at offset 20.
STRANGERS = (
    batch(3, 20, 30),  # a number was left out
    batch(2, 25, 30),  # offsets were left out
    batch(2, 15, 30),  # offsets come again
    batch(1, 10, 21),  # the same number stands for other offsets
    batch(0, 0, 10),  # an older number
    batch(0, 0, 10, "second"),  # a new checkpoint from the start of the log
    batch(0, 30, 40, "second"),  # a new checkpoint after a gap
    batch(1, 20, 30, "second"),  # a new checkpoint that does not begin with 0
    Batch("first", 2, {}, {"log": {0: 30}}),  # a partition was forgotten
)


class SinkContract:
    """The suite. `opening` and `writing` are the points that the driver passes in `open` and in `write`."""

    opening: ClassVar[tuple[str, ...]] = ()
    writing: ClassVar[tuple[str, ...]] = ()

    def make_sink(self, spark, settings, unique, **options):
        """Return a sink that is not open; calls with the same `unique` give the same sink in other hands."""
        raise NotImplementedError

    def rows(self, spark, numbers):
        """Return a DataFrame for the sink with a row for each number."""
        raise NotImplementedError

    def contents(self, sink):
        """Return the numbers that a reader of the target sees, each as often as it is there."""
        raise NotImplementedError

    @pytest.fixture
    def anew(self, spark, settings, unique):
        """Make the sink as a new process would: open, and the writer from now on."""
        made = []

        def make(**options):
            sink = self.make_sink(spark, settings, unique, **options)
            made.append(sink)
            sink.open()
            return sink

        yield make
        for sink in made:
            sink.close()

    @pytest.fixture
    def put(self, spark):
        """Write the rows of the offsets that a batch stands for, or other rows."""

        def put(sink, one, numbers=None, tries=1):
            offsets = range(one.start["log"][0], one.end["log"][0])
            try:
                sink.write(self.rows(spark, offsets if numbers is None else numbers), one)
            except SinkError:
                if tries == 1:
                    raise
                put(sink, one, numbers, tries - 1)

        return put

    def holds(self, sink, numbers):
        return sorted(self.contents(sink)) == list(numbers)

    def test_a_new_sink_has_written_nothing(self, spark, settings, unique):
        sink = self.make_sink(spark, settings, unique)
        assert {entry.batch for entry in sink.open()} == {None}
        sink.close()

    def test_batches_are_written_one_after_the_other(self, anew, put):
        sink = anew()
        put(sink, batch(0, 0, 100))
        assert self.holds(sink, range(100))
        put(sink, batch(1, 100, 150))
        assert self.holds(sink, range(150))

    def test_a_batch_that_was_written_is_skipped(self, anew, put):
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(0, 0, 10))
        put(anew(), batch(0, 0, 10))
        assert self.holds(sink, range(10))

    def test_a_batch_that_does_not_follow_is_refused(self, anew, put, spark):
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 20))
        for stranger in STRANGERS:
            with pytest.raises(LedgerError, match="batch 1 of checkpoint first"):
                sink.write(self.rows(spark, [99]), stranger)
        assert self.holds(sink, range(20))
        put(sink, batch(2, 20, 30))
        assert self.holds(sink, range(30))

    def test_a_new_checkpoint_may_go_on_where_the_ledger_ends(self, anew, put):
        put(anew(), batch(0, 0, 10))
        sink = anew()
        put(sink, batch(0, 10, 20, "second"))
        put(sink, batch(1, 20, 30, "second"))
        assert self.holds(sink, range(30))

    def test_an_empty_batch_counts(self, anew, put):
        sink = anew()
        put(sink, batch(0, 0, 10), numbers=[])
        put(sink, batch(0, 0, 10), numbers=[99])
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(10, 20))

    def test_rows_may_come_without_a_step_in_the_log(self, anew, put):
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 10), numbers=range(10, 15))
        put(sink, batch(1, 10, 10), numbers=range(10, 15))
        put(sink, batch(2, 10, 10), numbers=range(15, 20))
        assert self.holds(sink, range(20))

    def test_a_partition_may_be_added(self, anew, put):
        sink = anew()
        put(sink, batch(0, 0, 10))
        grown = Batch("first", 1, {"log": {0: 10}}, {"log": {0: 20, 1: 5}})
        put(sink, grown)
        put(sink, Batch("first", 2, grown.end, {"log": {0: 30, 1: 5}}))
        assert self.holds(sink, range(30))

    def test_a_zombie_is_refused(self, anew, put):
        zombie = anew()
        put(zombie, batch(0, 0, 10))
        sink = anew()
        with pytest.raises(FencedError):
            put(zombie, batch(1, 10, 20))
        assert self.holds(sink, range(10))
        put(sink, batch(1, 10, 20), tries=3)  # another task of the zombie may just be breaking in
        with pytest.raises(FencedError):
            put(zombie, batch(2, 20, 30))
        put(sink, batch(2, 20, 30), tries=3)
        assert self.holds(sink, range(30))

    def test_the_ledger_outlives_the_writer(self, anew, put, spark, settings, unique):
        first = anew()
        put(first, batch(0, 0, 10))
        first.close()
        sink = self.make_sink(spark, settings, unique)
        entries = sink.open()
        assert {entry.batch.number for entry in entries} == {0}
        assert all(entry.batch == batch(0, 0, 10) for entry in entries)
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(20))
        sink.close()

    def test_rows_are_written_at_most_once_on_request(self, anew, put):
        sink = anew(guarantee="at-most-once")
        put(sink, batch(0, 0, 10))
        put(anew(guarantee="at-most-once"), batch(0, 0, 10))
        assert self.holds(sink, range(10))

    def pytest_generate_tests(self, metafunc):
        for name in ("opening_point", "writing_point"):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, getattr(self, name.removesuffix("_point")))

    def test_a_crash_while_opening_changes_nothing(self, anew, put, monkeypatch, opening_point):
        put(anew(), batch(0, 0, 10))
        with monkeypatch.context() as patched:
            crash_at(patched, opening_point)
            with pytest.raises(Crash):
                anew()
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(20))

    def test_a_crash_while_writing_loses_and_doubles_nothing(self, anew, put, monkeypatch, writing_point):
        dying = anew()
        put(dying, batch(0, 0, 10))
        with monkeypatch.context() as patched:
            crash_at(patched, writing_point)
            with pytest.raises(Crash):
                put(dying, batch(1, 10, 20))
        sink = anew()
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(20))
        put(sink, batch(2, 20, 30))
        assert self.holds(sink, range(30))
