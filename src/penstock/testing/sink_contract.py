"""What every sink has to pass, by level of guarantee; a subclass says how to make one and what it holds.

    class TestMySink(ExactlyOnceContract):
        writing = ("sink.mine.written",)

        def make_sink(self, spark, settings, unique, **options): ...
        def rows(self, spark, numbers): ...
        def contents(self, sink): ...

It is for pytest, with fixtures `spark` (a session), `settings` and `unique` (a name that no other test has).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock import points
from penstock.errors import FencedError, LedgerError, SinkError
from penstock.log.ledger import Batch
from penstock.settings import Settings
from penstock.targets import Sink

Put = Callable[..., None]
Anew = Callable[..., Sink]


class Crash(Exception):
    """The process would be dead at this point."""


def crash_at(monkeypatch: pytest.MonkeyPatch, wanted: str, error: type[BaseException] = Crash) -> None:
    """Let the driver die when it passes a point; executors are not concerned.

    A flow tries again after a Crash; after an error that is no Exception it does not.
    """

    def sent(_: str, line: str) -> None:
        if line.split()[1] == wanted:
            raise error(wanted)

    monkeypatch.setenv(points.VARIABLE, "nobody listens")
    monkeypatch.setattr(points, "_send", sent)


def batch(number: int, start: int, end: int, checkpoint: str = "first") -> Batch:
    """A batch of the log's one partition from an offset to another."""
    return Batch(checkpoint, number, {"log": {0: start}}, {"log": {0: end}})


def numbered(spark: SparkSession, numbers: Iterable[int]) -> DataFrame:
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


class AtLeastOnceContract:
    """Nothing is lost, whatever happens; what a crash interrupts may be written twice.

    `opening` and `writing` are the crash points that the driver passes in `open` and in `write`.
    """

    opening: ClassVar[tuple[str, ...]] = ()
    writing: ClassVar[tuple[str, ...]] = ()

    def make_sink(self, spark: SparkSession, settings: Settings, unique: str, **options: Any) -> Sink:
        """Return a sink that is not open; calls with the same `unique` give the same sink in other hands."""
        raise NotImplementedError

    def rows(self, spark: SparkSession, numbers: Iterable[int]) -> DataFrame:
        """Return a DataFrame for the sink with a row for each number."""
        raise NotImplementedError

    def contents(self, sink: Any) -> Iterable[int]:
        """Return the numbers that a reader of the target sees, each as often as it is there."""
        raise NotImplementedError

    def holds(self, sink: Sink, numbers: Iterable[int]) -> bool:
        """Whether a reader sees these numbers, and no others."""
        return set(self.contents(sink)) == set(numbers)

    @pytest.fixture
    def anew(self, spark: SparkSession, settings: Settings, unique: str) -> Iterator[Anew]:
        """Make the sink as a new process would: open, and the writer from now on."""
        made: list[Sink] = []

        def make(**options: Any) -> Sink:
            sink = self.make_sink(spark, settings, unique, **options)
            made.append(sink)
            sink.open()
            return sink

        yield make
        for sink in made:
            sink.close()

    @pytest.fixture
    def put(self, spark: SparkSession) -> Put:
        """Write the rows of the offsets that a batch stands for, or other rows."""

        def put(sink: Sink, one: Batch, numbers: Sequence[int] | None = None, tries: int = 1) -> None:
            offsets = range(one.start["log"][0], one.end["log"][0])
            try:
                sink.write(self.rows(spark, offsets if numbers is None else numbers), one)
            except SinkError:
                if tries == 1:
                    raise
                put(sink, one, numbers, tries - 1)

        return put

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        for name in ("opening_point", "writing_point"):
            if name in metafunc.fixturenames:
                metafunc.parametrize(name, getattr(self, name.removesuffix("_point")))

    def test_a_new_sink_has_written_nothing(
        self, spark: SparkSession, settings: Settings, unique: str
    ) -> None:
        sink = self.make_sink(spark, settings, unique)
        assert {entry.batch for entry in sink.open()} == {None}
        sink.close()

    def test_batches_are_written_one_after_the_other(self, anew: Anew, put: Put) -> None:
        sink = anew()
        put(sink, batch(0, 0, 100))
        assert self.holds(sink, range(100))
        put(sink, batch(1, 100, 150))
        assert self.holds(sink, range(150))

    def test_a_batch_that_does_not_follow_is_refused(self, anew: Anew, put: Put, spark: SparkSession) -> None:
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 20))
        for stranger in STRANGERS:
            with pytest.raises(LedgerError, match="batch 1 of checkpoint first"):
                sink.write(self.rows(spark, [99]), stranger)
        assert self.holds(sink, range(20))
        put(sink, batch(2, 20, 30))
        assert self.holds(sink, range(30))

    def test_a_new_checkpoint_may_go_on_where_the_ledger_ends(self, anew: Anew, put: Put) -> None:
        put(anew(), batch(0, 0, 10))
        sink = anew()
        put(sink, batch(0, 10, 20, "second"))
        put(sink, batch(1, 20, 30, "second"))
        assert self.holds(sink, range(30))

    def test_an_empty_batch_counts(self, anew: Anew, put: Put) -> None:
        sink = anew()
        put(sink, batch(0, 0, 10), numbers=[])
        put(sink, batch(0, 0, 10), numbers=[99])
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(10, 20))

    def test_rows_may_come_without_a_step_in_the_log(self, anew: Anew, put: Put) -> None:
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 10), numbers=range(10, 15))
        put(sink, batch(1, 10, 10), numbers=range(10, 15))
        put(sink, batch(2, 10, 10), numbers=range(15, 20))
        assert self.holds(sink, range(20))

    def test_a_partition_may_be_added(self, anew: Anew, put: Put) -> None:
        sink = anew()
        put(sink, batch(0, 0, 10))
        grown = Batch("first", 1, {"log": {0: 10}}, {"log": {0: 20, 1: 5}})
        put(sink, grown)
        put(sink, Batch("first", 2, grown.end, {"log": {0: 30, 1: 5}}))
        assert self.holds(sink, range(30))

    def test_the_ledger_outlives_the_writer(
        self, anew: Anew, put: Put, spark: SparkSession, settings: Settings, unique: str
    ) -> None:
        first = anew()
        put(first, batch(0, 0, 10))
        first.close()
        sink = self.make_sink(spark, settings, unique)
        for entries in (sink.entries(), sink.open()):
            assert entries
            assert all(entry.batch == batch(0, 0, 10) for entry in entries)
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(20))
        sink.close()

    def test_a_sink_that_begins_anew_forgets_its_ledger(
        self, anew: Anew, put: Put, spark: SparkSession, settings: Settings, unique: str
    ) -> None:
        put(anew(), batch(0, 0, 10))
        sink = self.make_sink(spark, settings, unique)
        assert {entry.batch for entry in sink.open(anew=True)} == {None}
        put(sink, batch(0, 20, 30, "second"))
        assert self.holds(sink, [*range(10), *range(20, 30)])
        sink.close()

    def test_nothing_is_committed_before_all_rows_are_computed(self, anew: Anew, spark: SparkSession) -> None:
        sink = anew()

        def refuse(_: DataFrame) -> None:
            raise Crash("before the commit")

        with pytest.raises(Crash):
            sink.write(self.rows(spark, range(10)), batch(0, 0, 10), refuse)
        assert self.holds(sink, [])
        anew().write(self.rows(spark, range(10)), batch(0, 0, 10))
        assert self.holds(sink, range(10))

    def test_a_crash_while_opening_changes_nothing(
        self, anew: Anew, put: Put, monkeypatch: pytest.MonkeyPatch, opening_point: str
    ) -> None:
        put(anew(), batch(0, 0, 10))
        with monkeypatch.context() as patched:
            crash_at(patched, opening_point)
            with pytest.raises(Crash):
                anew()
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(1, 10, 20))
        assert self.holds(sink, range(20))

    def test_a_crash_while_writing_is_made_good(
        self, anew: Anew, put: Put, monkeypatch: pytest.MonkeyPatch, writing_point: str
    ) -> None:
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


class ExactlyOnceContract(AtLeastOnceContract):
    """Besides, nothing is written twice, and nobody writes who was taken for dead."""

    def holds(self, sink: Sink, numbers: Iterable[int]) -> bool:
        """Whether a reader sees these numbers, each once."""
        return sorted(self.contents(sink)) == sorted(numbers)

    def test_a_batch_that_was_written_is_skipped(self, anew: Anew, put: Put) -> None:
        sink = anew()
        put(sink, batch(0, 0, 10))
        put(sink, batch(0, 0, 10))
        put(anew(), batch(0, 0, 10))
        assert self.holds(sink, range(10))

    def test_a_zombie_is_refused(self, anew: Anew, put: Put) -> None:
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

    def test_who_takes_the_ledger_over_shuts_out_and_changes_nothing(
        self, anew: Anew, put: Put, spark: SparkSession, settings: Settings, unique: str
    ) -> None:
        shut_out = anew()
        put(shut_out, batch(0, 0, 10))
        sink = self.make_sink(spark, settings, unique)
        entries = sink.take_over()
        assert entries
        assert all(entry.batch == batch(0, 0, 10) for entry in entries)
        sink.close()
        with pytest.raises(FencedError):
            put(shut_out, batch(1, 10, 20))
        put(anew(), batch(1, 10, 20), tries=3)
        assert self.holds(sink, range(20))

    def test_rows_are_written_at_most_once_on_request(self, anew: Anew, put: Put) -> None:
        sink = anew(guarantee="at-most-once")
        put(sink, batch(0, 0, 10))
        put(anew(guarantee="at-most-once"), batch(0, 0, 10))
        assert self.holds(sink, range(10))
