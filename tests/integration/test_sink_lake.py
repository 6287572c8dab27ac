"""The lake sink on real Delta tables: the contract of all sinks, and what is its own."""

import json
import math
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import functions as F
from pyspark.sql.types import StructType
from tests.integration.lake_worker import KEYS, SIZE, tables

from penstock import points
from penstock.errors import DataError, FencedError, LedgerError, SinkError, TargetError
from penstock.settings import Settings
from penstock.targets import LakeTable, SinkOptions
from penstock.targets.lake.contents import contents
from penstock.targets.lake.files import StagedFile
from penstock.targets.lake.maintenance import orphans
from penstock.testing.sink_contract import Crash, ExactlyOnceContract, batch, crash_at, numbered
from penstock.testing.upsert_contract import SCHEMA, UpsertContract

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def settings():
    """A lake table needs no service."""
    return Settings()


@pytest.fixture
def opened(settings, unique, tmp_path):
    """Make a sink for a table of the test's own, and open it."""

    def open_sink(schema, **table):
        options = {name: table.pop(name) for name in ("guarantee", "lanes", "id") if name in table}
        declared = LakeTable(table.pop("path", str(tmp_path / "table")), **table)
        shape = StructType.fromDDL(schema) if isinstance(schema, str) else schema
        sink = declared.sink(shape, SinkOptions(settings, **{"id": unique} | options))
        sink.open()
        return sink

    return open_sink


@pytest.fixture
def at_point(monkeypatch):
    """Do something when the driver passes a point."""

    def listen(wanted, work):
        def sent(_, line):
            if line.split()[1] == wanted:
                monkeypatch.delenv(points.VARIABLE)
                work()

        monkeypatch.setenv(points.VARIABLE, "nobody listens")
        monkeypatch.setattr(points, "_send", sent)

    return listen


def frame(spark, shape, *rows):
    """Rows in one partition, and so in an order; made without Python workers, which takes less time."""
    listed = json.dumps([dict(zip(StructType.fromDDL(shape).names, row, strict=True)) for row in rows])
    return spark.range(1).select(F.inline(F.from_json(F.lit(listed), f"array<struct<{shape}>>")))


def held(sink, *columns):
    """What a table holds, read by DuckDB from the snapshot's files."""
    snapshot = DeltaTable(str(sink.table.root)).to_pyarrow_dataset()  # noqa: F841
    return sorted(duckdb.sql(f"SELECT {', '.join(columns) or '*'} FROM snapshot").fetchall(), key=str)


def parquet_files(sink):
    return {each.name for each in sink.table.root.rglob("*.parquet") if "_delta_log" not in each.parts}


SIMPLE = "card string, total bigint"


def totals(spark, *rows):
    return frame(spark, SIMPLE, *rows)


class TestLakeSink(ExactlyOnceContract):
    """Rows are appended to a table without a key, so that a row that comes twice is there twice."""

    opening = ("sink.lake.opened",)
    writing = ("sink.lake.staged", "sink.lake.before-commit", "sink.lake.committed")

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make_sink(self, spark, settings, unique, **options):
        schema = numbered(spark, []).schema
        return LakeTable(str(self.folder / unique)).sink(schema, SinkOptions(settings, unique, **options))

    def rows(self, spark, numbers):
        return numbered(spark, numbers)

    def contents(self, sink):
        return DeltaTable(str(sink.table.root)).to_pyarrow_table().column("id").to_pylist()


class TestLakeUpsertSink(TestLakeSink):
    """The same where rows are merged by key."""

    def make_sink(self, spark, settings, unique, **options):
        table = LakeTable(str(self.folder / unique), key="id", write="upsert")
        return table.sink(numbered(spark, []).schema, SinkOptions(settings, unique, **options))


class TestLakeUpserts(UpsertContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def make_sink(self, spark, settings, unique):
        table = LakeTable(str(self.folder / unique), key="key", write="upsert")
        return table.sink(StructType.fromDDL(SCHEMA), SinkOptions(settings, unique))

    def table(self, sink):
        found = pl.read_delta(str(sink.table.root))
        assert found.columns == ["key", "value"]
        return dict(found.rows())


TYPES = (
    "id int, money decimal(38,9), at timestamp, wall timestamp_ntz, day date, raw binary, real float, "
    "double double, tiny tinyint, small smallint, flag boolean, text string, "
    "nested struct<a: int, list: array<struct<b: string, at: timestamp>>>, "
    "map map<string, decimal(10,2)>, list array<bigint>"
)
MOMENT = datetime(2024, 2, 29, 23, 59, 59, 123456, UTC)
FULL = (
    1, Decimal("12345678901234567890123456789.123456789"), MOMENT, MOMENT.replace(tzinfo=None),
    date(1969, 7, 20), b"\0\xff", math.nan, -math.inf, -128, 32767, True, "ü\0'\"",
    (7, [("x", MOMENT), (None, None)]),
    {"k": Decimal("1.10")}, [1, None, -(2**63)],
)  # fmt: skip


@pytest.mark.parametrize("write", ["append", "upsert"])
def test_every_type_comes_back(spark, opened, write):
    shape = StructType.fromDDL(TYPES)
    sink = opened(shape, key="id", write=write)
    empty = (2, *[None] * (len(shape) - 1))
    rows = spark.createDataFrame([FULL, empty], shape)
    sink.write(rows, batch(0, 0, 1))
    sink.write(spark.createDataFrame([(3, *FULL[1:])], shape), batch(1, 1, 2))
    expected = rows.union(spark.createDataFrame([(3, *FULL[1:])], shape))
    found = contents(spark, sink.table, shape)
    assert found.schema == shape
    as_text = [sorted(map(str, each.collect())) for each in (expected, found)]
    assert as_text[0] == as_text[1]
    full, nulls = held(sink, 'id, money, "at", wall, day, raw, nested, list')[:2]
    assert full[1] == FULL[1]
    assert full[2] == MOMENT
    assert full[3:6] == (MOMENT.replace(tzinfo=None), date(1969, 7, 20), b"\0\xff")
    assert full[6]["list"][1] == {"b": None, "at": None}
    assert set(nulls[1:]) == {None}
    read = pl.read_delta(str(sink.table.root)).sort("id")
    assert math.isnan(read["real"][0])
    assert read["double"][0] == -math.inf
    assert read["at"][0] == MOMENT


def test_what_the_log_knows_of_files_leaves_no_row_out(spark, opened):
    """A reader that skips files by their bounds finds each row by every column."""
    shape = "id bigint, at timestamp, text string, real double, day date, money decimal(38,2)"
    sink = opened(shape, lanes=3)
    assert len(DeltaTable(str(sink.table.root)).metadata().configuration) == 1
    made = spark.range(400).select(
        "id",
        F.expr("timestamp_micros(1700000000000000 + id * 1001)").alias("at"),
        F.expr("if(id % 7 = 0, null, concat(id, repeat('ü', cast(id % 80 as int))))").alias("text"),
        F.expr("if(id % 5 = 0, double('NaN'), double(id))").alias("real"),
        F.expr("date_add(date'2024-01-01', cast(id as int))").alias("day"),
        F.expr("cast(id as decimal(30,2)) * 123456789012345678").alias("money"),
    )
    sink.write(made, batch(0, 0, 1))
    for compacted in (False, True):
        if compacted:
            DeltaTable(str(sink.table.root)).optimize.compact()
        found_by_every_column(DeltaTable(str(sink.table.root)), compacted)


def found_by_every_column(table, compacted):
    assert table.count() == 400
    lazy = pl.scan_delta(table.table_uri)
    assert lazy.filter(pl.col("real").is_nan()).collect().height == 80
    for row in table.to_pyarrow_table().to_pylist()[::37]:
        for name in ("id", "at", "text", "day", "money"):
            if row[name] is None:
                continue
            assert lazy.filter(pl.col(name) == row[name]).collect()["id"].to_list() == [row["id"]], name
            if name != "text" or not compacted:  # pyarrow can't compare the texts of files by delta-rs
                found = table.to_pyarrow_table(filters=[(name, "=", row[name])]).column("id").to_pylist()
                assert found == [row["id"]], name


@pytest.mark.parametrize("write", ["append", "upsert"])
def test_a_table_may_be_partitioned(spark, opened, write):
    shape = "id int, place string, day date, flag boolean, n int"
    rows = [
        (number, place, day, flag, number)
        for number, (place, day, flag) in enumerate(
            [
                ("a b", "2024-01-01", True),
                ("ü/%={x}*", None, False),
                (None, "1969-01-01", None),
                ("a b", "2024-01-01", True),
            ]
        )
    ]
    columns = ("place", "day", "flag")
    sink = opened(shape, key="id", write=write, partition_by=columns)
    sink.write(frame(spark, shape, *rows), batch(0, 0, 1))
    sink.write(frame(spark, shape, *((n + 10, *rest) for n, *rest in rows)), batch(1, 1, 2))
    both = [*rows, *((n + 10, *rest) for n, *rest in rows)]
    expected = sorted((n, p, d and date.fromisoformat(d), f, v) for n, p, d, f, v in both)
    assert sorted(map(tuple, contents(spark, sink.table, StructType.fromDDL(shape)).collect())) == expected
    assert set(held(sink, "id, place, day, flag, n")) == set(expected)
    assert set(pl.read_delta(str(sink.table.root)).rows()) == set(expected)
    DeltaTable(str(sink.table.root)).optimize.compact()
    assert set(pl.read_delta(str(sink.table.root)).rows()) == set(expected)
    assert sorted(map(tuple, contents(spark, sink.table, StructType.fromDDL(shape)).collect())) == expected
    with pytest.raises(TargetError, match="is partitioned by"):
        opened(shape, key="id", write=write, partition_by=("place",))


def test_an_empty_text_is_no_partition(spark, opened):
    sink = opened(SIMPLE, partition_by="card")
    with pytest.raises(DataError, match="'card' holds an empty text"):
        sink.write(totals(spark, ("", 1)), batch(0, 0, 1))


def test_a_null_key_is_refused(spark, opened):
    sink = opened(SIMPLE, key="card", write="upsert")
    with pytest.raises(DataError, match="the key 'card' is null"):
        sink.write(totals(spark, (None, 1)), batch(0, 0, 1))
    assert held(sink) == []


def test_a_column_is_added_and_a_changed_type_is_refused(spark, opened):
    sink = opened(SIMPLE)
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    grown = (
        "card string, total bigint, extra struct<x: int>, wall timestamp_ntz, _source string, _order bigint"
    )
    sink = opened(grown)
    wall = datetime(2024, 1, 1, 12)
    sink.write(frame(spark, grown, ("b", 2, {"x": 3}, str(wall), "s", 1)), batch(1, 1, 2))
    assert held(sink, "card, extra.x, wall") == [("a", None, None), ("b", 3, wall)]
    with pytest.raises(TargetError, match=r"column 'total' of type bigint, the flow needs string"):
        opened("card string, total string")
    with pytest.raises(TargetError, match=r"has 'card', the flow has 'Card'"):
        opened("Card string")
    sink = opened("card string")  # a column that the flow has no more is null
    sink.write(frame(spark, "card string", ("c",)), batch(2, 2, 3))
    assert held(sink, "card, total")[-1] == ("c", None)


@pytest.mark.parametrize(
    ("schema", "declared", "expected"),
    [
        (SIMPLE, {"key": "nobody", "write": "upsert"}, "the key 'nobody' is not among card, total"),
        ("card double", {"key": "card", "write": "upsert"}, "the key 'card' is double"),
        (SIMPLE, {"partition_by": ("card", "total")}, "no column is left"),
        ("card string, _deleted boolean", {}, "rows that are appended can't be deleted"),
        ("`a b` string", {}, "'a b' is not a column name"),
        ("a string, A string", {}, "are one to Delta"),
        ("a interval day to second", {}, "for which Delta has none"),
    ],
)
def test_results_that_do_not_fit_are_refused(spark, opened, schema, declared, expected):
    with pytest.raises(TargetError, match=expected):
        opened(schema, **declared)


def test_declarations_check_themselves():
    with pytest.raises(TargetError, match="object store"):
        LakeTable("s3://bucket/table")
    with pytest.raises(TargetError, match="upsert needs a key"):
        LakeTable("table", write="upsert")
    with pytest.raises(TargetError, match="expected 'append' or 'upsert'"):
        LakeTable("table", write="merge")
    with pytest.raises(TargetError, match="names a column twice"):
        LakeTable("table", key=("a", "a"))


def test_tables_with_rules_of_their_own_and_folders_with_other_files_are_refused(spark, opened, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(TargetError, match=r"holds 'letter.txt' and is not a Delta table"):
        opened(SIMPLE, path=str(tmp_path / "mine"))
    ruled = str(tmp_path / "ruled")
    write_deltalake(ruled, pa.table({"card": ["a"], "total": [1]}))
    DeltaTable(ruled).alter.add_constraint({"positive": "total > 0"})
    with pytest.raises(TargetError, match="which is not kept here"):
        opened(SIMPLE, path=ruled)


def test_a_table_that_somebody_else_writes_too(spark, opened, at_point, tmp_path):
    """Other commits come between; what is theirs stays."""
    for write, path in (("append", "one"), ("upsert", "two")):
        root = opened(SIMPLE, key="card", write=write, path=str(tmp_path / path)).table.root
        sink = opened(SIMPLE, key="card", write=write, path=str(root))
        at_point(
            "sink.lake.before-commit",
            lambda root=root: write_deltalake(
                str(root), pa.table({"card": ["other"], "total": [9]}), mode="append"
            ),
        )
        sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
        assert held(sink) == [("a", 1), ("other", 9)]


def test_a_zombie_can_not_commit_behind_its_successor(spark, opened, at_point, tmp_path):
    """The successor comes after all checks, right before the commit."""
    for write in ("append", "upsert"):
        zombie = opened(SIMPLE, key="card", write=write, path=str(tmp_path / write))
        at_point(
            "sink.lake.before-commit",
            lambda z=zombie: opened(SIMPLE, key="card", write=z.table.write, path=z.table.path),
        )
        with pytest.raises(FencedError):
            zombie.write(totals(spark, ("a", 1)), batch(0, 0, 1))
        assert held(zombie) == []


def test_many_may_open_at_once(spark, settings, unique, tmp_path):
    shape = StructType.fromDDL(SIMPLE)
    table = LakeTable(str(tmp_path / "table"))
    sinks = [table.sink(shape, SinkOptions(settings, f"{unique}.{number % 2}")) for number in range(6)]
    with ThreadPoolExecutor(len(sinks)) as pool:
        entries = [entry for (entry,) in pool.map(lambda sink: sink.open(), sinks)]
    assert sorted(entry.epoch for entry in entries) == [1, 1, 2, 2, 3, 3]
    assert {sink.entries()[0].epoch for sink in sinks} == {3}


@pytest.mark.parametrize("write", ["append", "upsert"])
def test_compaction_keeps_contents_and_the_ledger(spark, opened, write):
    sink = opened(SIMPLE, key="card", write=write, compact=4, retention="1 hour")
    for number in range(9):
        sink.write(totals(spark, (f"{number}", number), (f"x{number}", 0)), batch(number, number, number + 1))
    assert len(held(sink)) == 18
    table = DeltaTable(str(sink.table.root))
    assert "OPTIMIZE" in {each["operation"] for each in table.history()} or write == "upsert"
    assert len(table.file_uris()) <= 8
    assert sink.entries()[0].batch.number == 8
    assert [each.suffix for each in sink.table.root.glob("_penstock/*/*")] == [".json"]


def test_the_ledger_outlives_checkpoints_and_the_cleaning_of_the_log(spark, opened, unique):
    sink = opened(SIMPLE)
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    for number in range(3):
        write_deltalake(str(sink.table.root), pa.table({"card": ["z"], "total": [number]}), mode="append")
    table = DeltaTable(str(sink.table.root))
    table.create_checkpoint()
    for old in sorted((sink.table.root / "_delta_log").glob("*.json")):
        if int(old.stem) < table.version():
            old.unlink()
    assert opened(SIMPLE).entries()[0].batch == batch(0, 0, 1)


@pytest.mark.parametrize("point", ["staged", "before-commit", "committed"])
@pytest.mark.parametrize("write", ["append", "upsert"])
def test_a_crashed_batch_leaves_no_file(spark, opened, monkeypatch, point, write):
    """A month of crashes does not fill the disk."""
    declared = {"key": "card", "write": write, "partition_by": "card"}
    for _ in range(2):
        sink = opened(SIMPLE, **declared)
        with monkeypatch.context() as patch, suppress(Crash):
            crash_at(patch, f"sink.lake.{point}")
            sink.write(totals(spark, ("a", 1), ("b", 2)), batch(0, 0, 1))
    sink = opened(SIMPLE, **declared)
    assert len(list(sink.table.root.glob("_penstock/*/*"))) == 1
    active = {Path(each).name for each in DeltaTable(str(sink.table.root)).file_uris()}
    assert parquet_files(sink) == active
    assert len(active) == 2 * (point == "committed")


def test_files_of_a_merge_that_was_killed_are_removed_after_an_hour(spark, opened):
    sink = opened(SIMPLE)
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    old, new = (sink.table.root / f"part-{name}.parquet" for name in ("old", "new"))
    for each in (old, new):
        each.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    assert orphans(DeltaTable(str(sink.table.root))) == [old.name]
    sink = opened(SIMPLE)
    assert not old.exists()
    assert new.exists()
    assert held(sink) == [("a", 1)]


def test_an_entry_that_is_missing_is_reported_and_may_be_forgotten(spark, opened, settings, unique):
    sink = opened(SIMPLE)
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    for each in sink.table.root.glob("_penstock/*/*.json"):
        each.unlink()
    with pytest.raises(LedgerError, match="is missing"):
        opened(SIMPLE)
    again = sink.table.sink(StructType.fromDDL(SIMPLE), SinkOptions(settings, unique))
    (entry,) = again.open(anew=True)
    assert entry.epoch == 2


def test_a_folder_that_can_not_be_written_is_reported(spark, opened, at_point):
    sink = opened(SIMPLE)

    def lose():
        for each in sink.table.root.glob("_penstock/*/*/*.parquet"):
            each.unlink()

    at_point("sink.lake.staged", lose)
    with pytest.raises(SinkError, match="can't link a file"):
        sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))


def test_a_rebuilt_table_takes_the_place_of_the_live_one(spark, settings, opened, unique, monkeypatch):
    live = opened(SIMPLE, partition_by="card")
    live.write(totals(spark, ("old", 1)), batch(0, 0, 1))
    reader = DeltaTable(str(live.table.root))
    other = live.table.beside("rebuilt2")
    grown = f"{SIMPLE}, wall timestamp_ntz, flag boolean"
    rebuilt = other.sink(StructType.fromDDL(grown), SinkOptions(settings, unique))
    rebuilt.open()
    rows = frame(spark, grown, ("new", 2, "2024-01-01T00:00:00", True), (None, 3, None, None))
    rebuilt.write(rows, batch(0, 0, 7, "second"))

    with monkeypatch.context() as patch:  # killed after the links, before the commit
        patch.setattr("penstock.targets.lake.swap.properties", _die)
        with pytest.raises(Crash):
            live.table.swap(other, settings)
    assert held(live) == [("old", 1)]
    with monkeypatch.context() as patch:  # killed after the commit
        patch.setattr("penstock.targets.lake.swap.shutil.rmtree", _die)
        with pytest.raises(Crash):
            live.table.swap(other, settings)
    for _ in range(2):
        live.table.swap(other, settings)
        assert held(live, "total, wall, flag") == [(2, datetime(2024, 1, 1), True), (3, None, None)]
    assert not other.root.exists()
    assert reader.to_pyarrow_table().num_rows == 1  # a reader at work goes on with its files
    assert live.entries()[0].batch == batch(0, 0, 7, "second")
    with pytest.raises(FencedError):
        live.write(totals(spark, ("zombie", 1)), batch(1, 1, 2))
    again = live.table.sink(StructType.fromDDL(grown), SinkOptions(settings, unique))
    again.open()
    again.write(frame(spark, grown, ("more", 4, None, False)), batch(1, 7, 8, "second"))
    assert held(live, "total") == [(2,), (3,), (4,)]
    with pytest.raises(TargetError, match="there is no table at"):
        again.table.beside("other").swap(again.table.beside("nothing"), settings)


def _die(*_, **__):
    raise Crash


def test_what_a_staged_file_knows():
    staged = StagedFile("a", 1, 1, '{"p": null, "q": "x"}', "{}")
    assert staged.values() == {"p": None, "q": "x"}


@pytest.mark.long
@pytest.mark.timeout(400)
def test_killed_at_any_moment_and_begun_again_the_tables_are_whole(tmp_path):
    """Kill -9 while two tables are written, merged and compacted; in the end nothing is lost or doubled."""
    rng, batches, kills = random.Random(7), 24, 0
    command = [sys.executable, "-m", "tests.integration.lake_worker", str(tmp_path), str(batches)]
    while True:
        worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        lines = iter(worker.stdout.readline, "")
        next(line for line in lines if line.strip() == "ready")
        if kills == 4:
            assert list(lines)[-1] == "done\n"
            assert worker.wait() == 0
            break
        time.sleep(rng.uniform(0.2, 3))
        worker.kill()
        worker.wait()
        kills += 1
    appended, upserted = (DeltaTable(str(each.root)) for each in tables(tmp_path))
    everything = range(batches * SIZE)
    assert sorted(appended.to_pyarrow_table().column("id").to_pylist()) == list(everything)
    last = {number % KEYS: number for number in everything}
    expected = {str(key): number for key, number in last.items() if number % 10 != 7}
    assert dict(pl.read_delta(upserted.table_uri).select("key", "id").rows()) == expected
