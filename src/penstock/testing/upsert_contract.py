"""What every sink has to pass whose rows replace those of the same key, besides the contract of its level.

It is for pytest, with fixtures `spark`, `settings` and `unique`. Rows have the columns of SCHEMA.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from penstock.settings import Settings
from penstock.targets import Sink
from penstock.testing.sink_contract import batch

Change = tuple[str, int | None]  # a key and its new value, or none if it is deleted
SCHEMA = "key string, value long, _deleted boolean, _order long"


class UpsertContract:
    """The suite."""

    def make_sink(self, spark: SparkSession, settings: Settings, unique: str) -> Sink:
        """Return a sink for rows of SCHEMA that is not open; the same `unique` gives the same sink."""
        raise NotImplementedError

    def table(self, sink: Any) -> Mapping[str, int]:
        """Return the values that a reader of the target sees, by their keys."""
        raise NotImplementedError

    @pytest.fixture
    def sink(self, spark: SparkSession, settings: Settings, unique: str) -> Iterator[Sink]:
        made = self.make_sink(spark, settings, unique)
        made.open()
        yield made
        made.close()

    def put(self, spark: SparkSession, sink: Sink, number: int, changes: Sequence[Change]) -> None:
        """Write a batch of changes, which come in any order."""
        rows = [(key, value, value is None, place) for place, (key, value) in enumerate(changes)]
        sink.write(self._shuffled(spark.createDataFrame(rows, SCHEMA)), batch(number, number, number + 1))

    def _shuffled(self, rows: DataFrame) -> DataFrame:
        return rows.repartition(4, "_order").orderBy("value")

    def test_the_last_row_of_a_key_stays(self, spark: SparkSession, sink: Sink) -> None:
        self.put(spark, sink, 0, [("a", 1), ("b", 1), ("a", 3), ("a", 2)])
        assert self.table(sink) == {"a": 2, "b": 1}
        self.put(spark, sink, 1, [("a", 4), ("c", 1)])
        assert self.table(sink) == {"a": 4, "b": 1, "c": 1}

    def test_a_deletion_takes_the_row_away(self, spark: SparkSession, sink: Sink) -> None:
        self.put(spark, sink, 0, [("a", 1), ("b", 1)])
        self.put(spark, sink, 1, [("a", None), ("nobody", None)])
        assert self.table(sink) == {"b": 1}

    def test_what_is_deleted_may_come_again_in_its_batch(self, spark: SparkSession, sink: Sink) -> None:
        self.put(spark, sink, 0, [("a", 1), ("a", None), ("a", 2), ("b", 1), ("b", None)])
        assert self.table(sink) == {"a": 2}

    def test_a_batch_that_is_repeated_brings_nothing_back(
        self, spark: SparkSession, settings: Settings, unique: str, sink: Sink
    ) -> None:
        self.put(spark, sink, 0, [("a", 1), ("b", 1)])
        self.put(spark, sink, 1, [("a", None), ("b", 2)])
        again = self.make_sink(spark, settings, unique)
        again.open()
        self.put(spark, again, 1, [("a", None), ("b", 2)])
        assert self.table(again) == {"b": 2}
        again.close()
