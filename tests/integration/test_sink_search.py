"""The sink of a full-text index: the contracts of its level, and a flow's results verified."""

import pytest
from pyspark.sql.types import StructType

from penstock.errors import DataError, TargetError
from penstock.log.ledger import Batch
from penstock.settings import Settings
from penstock.targets import SinkOptions
from penstock.targets.search import SearchIndex
from penstock.targets.target import Inspection
from penstock.testing.sink_contract import ExactlyOnceContract, batch, numbered
from penstock.testing.upsert_contract import SCHEMA, UpsertContract

EVERYTHING = (
    "id string, b boolean, n long, f float, d decimal(20,3), day date, at timestamp, local timestamp_ntz, "
    "raw binary, tags array<string>, m map<string,int>, s struct<x:double,y:array<timestamp>>"
)


@pytest.fixture
def settings(tmp_path):
    """An index needs neither a broker nor a database."""
    return Settings(data=tmp_path)


class TestSearchSink(ExactlyOnceContract):
    opening = ("sink.search.claimed",)
    writing = ("sink.search.written",)

    def make_sink(self, spark, settings, unique, guarantee="exactly-once"):
        self.index = SearchIndex(settings.data / unique)
        schema = self.rows(spark, []).schema
        return self.index.sink(schema, SinkOptions(settings, unique, guarantee=guarantee))

    def rows(self, spark, numbers):
        return numbered(spark, numbers)

    def contents(self, sink):
        return [row["id"] for row in self.index.search("*", limit=1000)]


class TestSearchUpserts(UpsertContract):
    def make_sink(self, spark, settings, unique):
        self.index = SearchIndex(settings.data / unique, key="key")
        return self.index.sink(StructType.fromDDL(SCHEMA), SinkOptions(settings, unique))

    def table(self, sink):
        return {row["key"]: row["value"] for row in self.index.search("*", limit=1000)}


def everything(spark, count):
    return spark.range(count).selectExpr(
        "concat('k', id) id", "id % 2 = 0 b", "if(id % 7 = 0, null, id) n", "cast(id / 3 as float) f",
        "cast(id / 7 as decimal(20,3)) d", "date_add(date'2020-01-01', cast(id as int)) day",
        "timestamp'2020-01-01 00:00:00.123456' + make_interval(0, 0, 0, 0, id) at",
        "timestamp_ntz'0001-01-01 00:00:00' local", "cast(concat('x', id) as binary) raw",
        "array('a', null, cast(id as string)) tags", "map('z', cast(id as int), 'a', null) m",
        "named_struct('x', if(id = 3, double('nan'), id / 3), 'y', array(timestamp'2020-01-01 00:00:00')) s",
    )  # fmt: skip


def inspection(settings):
    return Inspection("flow", settings, known=lambda _: None, possible=lambda: None)


def test_an_index_is_verified_with_columns_of_every_type(spark, settings):
    index, rows = SearchIndex(settings.data / "index", text=("tags",)), everything(spark, 3000)
    assert index.contents(spark, rows.schema, inspection(settings)).count() == 0
    sink = index.sink(rows.schema, SinkOptions(settings, "flow"))
    sink.open()
    sink.write(rows, batch(0, 0, 10))
    compared = index.compare(rows, inspection(settings))
    assert (compared.expected, compared.found, compared.missing, compared.unexpected) == (3000, 3000, 0, 0)
    less = index.compare(rows.limit(2999), Inspection("flow", settings, None, lambda: rows.limit(2999)))
    assert (less.expected, less.found, less.unexpected) == (2999, 3000, 1)
    assert index.search("tags:1234 AND b:true")[0]["n"] == 1234


def test_an_index_may_take_some_of_the_columns(spark, settings):
    index = SearchIndex(settings.data / "index", columns=("id", "n"))
    rows = everything(spark, 10).withColumnRenamed("s", "_source")
    sink = index.sink(rows.schema, SinkOptions(settings, "flow"))
    sink.open()
    sink.write(rows, batch(0, 0, 10))
    assert index.search("id:k3") == [{"id": "k3", "n": 3}]
    with pytest.raises(TargetError, match="the results have no column 'x'"):
        SearchIndex("p", columns=("id", "x")).sink(rows.schema, SinkOptions(settings, "flow"))


def test_a_null_key_stops_the_batch_and_names_the_row(spark, settings):
    index = SearchIndex(settings.data / "index", key=("id", "n"))
    rows = everything(spark, 20).select("id", "n")
    sink = index.sink(rows.schema, SinkOptions(settings, "flow"))
    sink.open()
    with pytest.raises(DataError, match=r"the key 'n' of a row is null: \{'id': 'k0', 'n': None\}"):
        sink.write(rows, batch(0, 0, 10))
    assert index.search("*") == []


def test_a_rebuilt_index_takes_the_place_with_its_ledger(spark, settings):
    index = SearchIndex(settings.data / "index")

    def filled(target, count, end):
        rows = everything(spark, count)
        sink = target.sink(rows.schema, SinkOptions(settings, "flow"))
        sink.open()
        sink.write(rows, Batch("rebuild" if end > 10 else "live", 0, {"log": {0: 0}}, {"log": {0: end}}))
        return sink

    filled(index, 10, 10)
    rebuilt = index.beside("rebuilt1")
    rows = filled(rebuilt, 20, 20)
    assert len(index.search("*", 100)) == 10
    index.swap(rebuilt, settings)
    assert len(index.search("*", 100)) == 20
    sink = index.sink(everything(spark, 1).schema, SinkOptions(settings, "flow"))
    (entry,) = sink.open()
    assert entry.batch.end == {"log": {0: 20}}
    sink.write(everything(spark, 21), Batch("next", 0, {"log": {0: 20}}, {"log": {0: 21}}))
    assert len(index.search("*", 100)) == 21
    assert rows.id == "flow"
