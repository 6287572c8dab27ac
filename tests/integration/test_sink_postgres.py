"""The PostgreSQL sink on a real server: the contract of all sinks, and what is its own."""

import json
import math
import random
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Timer

import psycopg
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock import points
from penstock.errors import DataError, FencedError, PenstockError, SettingsError, SinkError, TargetError
from penstock.log.ledger import Batch
from penstock.settings import Secret, Settings, reveal
from penstock.targets import SinkOptions
from penstock.targets.postgres import PostgresSink, PostgresTable, last_entry
from penstock.targets.postgres.comparison import compare_table
from penstock.targets.postgres.lane import Lane
from penstock.testing.sink_contract import Crash, ExactlyOnceContract, batch, crash_at
from penstock.testing.upsert_contract import SCHEMA, UpsertContract


@pytest.fixture
def sql(settings):
    """Ask the database."""

    def ask(statement, *parameters):
        with psycopg.connect(reveal(settings.postgres), autocommit=True) as connection:
            answer = connection.execute(statement, parameters or None)
            return answer.fetchall() if answer.description else []

    return ask


@pytest.fixture
def opened(settings, unique):
    """Make a sink for a table of the test's own, and open it."""
    made = []

    def open_sink(schema, **table):
        options = {name: table.pop(name) for name in ("guarantee", "lanes", "id") if name in table}
        declared = PostgresTable(f"t{unique}", **table)
        schema = StructType.fromDDL(schema) if isinstance(schema, str) else schema
        sink = PostgresSink(declared, schema, SinkOptions(settings, **{"id": unique} | options))
        made.append(sink)
        sink.open()
        return sink

    yield open_sink
    for sink in made:
        sink.close()


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


def staging_tables(sql):
    return {name for (name,) in sql("SELECT tablename FROM pg_tables WHERE tablename LIKE 'staging%'")}


class TestPostgresUpserts(UpsertContract):
    def make_sink(self, spark, settings, unique):
        self.settings, self.name = settings, f"u{unique}"
        table = PostgresTable(self.name, key="key", write="upsert")
        return table.sink(StructType.fromDDL(SCHEMA), SinkOptions(settings, unique))

    def table(self, sink):
        with psycopg.connect(reveal(self.settings.postgres)) as database:
            return dict(database.execute(f"select key, value from {self.name}").fetchall())


class TestPostgresSink(ExactlyOnceContract):
    """Rows are appended to a table without a key, so that a row that comes twice is there twice."""

    opening = ("sink.postgres.opened",)
    writing = ("sink.postgres.before-merge", "sink.postgres.merged", "sink.postgres.committed")

    def make_sink(self, spark, settings, unique, **options):
        self.settings = settings
        schema = StructType.fromDDL("number bigint")
        return PostgresSink(PostgresTable(f"t{unique}"), schema, SinkOptions(settings, unique, **options))

    def rows(self, spark, numbers):
        listed = ", ".join(map(str, numbers))
        return spark.sql(f"SELECT explode(CAST(array({listed}) AS array<bigint>)) AS number")

    def contents(self, sink):
        with psycopg.connect(reveal(self.settings.postgres)) as connection:
            return [number for (number,) in connection.execute(f"SELECT number FROM {sink.table.name}")]


SIMPLE = "card string, total bigint"


def frame(spark, shape, *rows):
    """Rows in one partition, and so in an order; made without Python workers, which takes less time."""
    listed = json.dumps([dict(zip(StructType.fromDDL(shape).names, row, strict=True)) for row in rows])
    return spark.range(1).select(F.inline(F.from_json(F.lit(listed), f"array<struct<{shape}>>")))


def totals(spark, *rows):
    return frame(spark, SIMPLE, *rows)


@pytest.mark.parametrize(("shape", "last"), [("_order struct<at: bigint>", 3), ("at bigint", 1)])
def test_the_last_row_of_a_key_is_that_of_its_order(spark, opened, sql, unique, shape, last):
    """A later row may come before an earlier one; without an order, what comes last counts."""
    shape = f"card string, total bigint, {shape}"
    sink = opened(shape, key="card", write="upsert", columns=("card", "total"))
    made = [("a", at, {"at": at} if "struct" in shape else at) for at in range(4)]
    later, earlier = (frame(spark, shape, *rows) for rows in (made[2:], made[:2]))
    sink.write(later.union(earlier), batch(0, 0, 4))
    assert sql(f"SELECT card, total FROM t{unique}") == [("a", last)]


@pytest.mark.parametrize("policy", ["skip", "refuse"])
def test_a_row_to_append_that_is_there_by_its_id_is_left_out_or_refused(spark, settings, unique, sql, policy):
    """A real-time flow that was killed emits results again."""
    table, shape = PostgresTable(f"t{unique}", repeated=policy), "id string, total bigint"
    sink = PostgresSink(table, StructType.fromDDL(shape), SinkOptions(settings, unique))
    sink.open()
    sink.write(frame(spark, shape, ("a", 1), ("b", 2)), batch(0, 0, 2))
    again = frame(spark, shape, ("b", 2), ("c", 3), ("c", 3))
    if policy == "refuse":
        with pytest.raises(DataError, match="duplicate key"):
            sink.write(again, batch(1, 2, 4))
    else:
        sink.write(again, batch(1, 2, 4))
        assert sorted(sql(f"SELECT id FROM t{unique}")) == [("a",), ("b",), ("c",)]
    sink.close()


def test_a_table_checks_itself():
    with pytest.raises(TargetError, match="upsert needs a key"):
        PostgresTable("alerts", write="upsert")
    with pytest.raises(TargetError, match="'replace', expected 'append' or 'upsert'"):
        PostgresTable("alerts", write="replace")
    with pytest.raises(TargetError, match="names a column twice"):
        PostgresTable("alerts", key=("card", "card"))
    for name in ("", "a.b.c", "alerts; drop table x", 'a"b', ".a", "a.", "x" * 64, "1a", "a\0"):
        with pytest.raises(TargetError, match="is not a table name"):
            PostgresTable(name)
    for name in ("penstock.ledger", "pg_catalog.pg_class"):
        with pytest.raises(TargetError, match="is reserved"):
            PostgresTable(name)
    assert PostgresTable("bank.Alerts").path == ("bank", "Alerts")
    assert PostgresTable("alerts", dsn="postgresql://u:hidden@h/d").dsn == Secret("postgresql://u:hidden@h/d")
    assert "hidden" not in repr(PostgresTable("alerts", dsn="postgresql://u:hidden@h/d"))
    named = Settings(connections={"shop": {"dsn": "host=shop"}}, postgres="host=main")
    assert PostgresTable("alerts", connection="shop").address(named) == Secret("host=shop")
    assert PostgresTable("alerts").address(named) == Secret("host=main")
    with pytest.raises(SettingsError, match="table 'alerts': there is no connection 'shoop'"):
        PostgresTable("alerts", connection="shoop").address(named)
    with pytest.raises(TargetError, match="a dsn and a connection"):
        PostgresTable("alerts", connection="shop", dsn="host=h")


@pytest.mark.parametrize(
    ("schema", "table", "said"),
    [
        ("card string", {"key": "kard", "write": "upsert"}, "the key 'kard' is not among card"),
        ("card struct<a: int>", {"key": "card", "write": "upsert"}, "the key 'card' is jsonb"),
        (
            "card string, _deleted int",
            {"key": "card", "write": "upsert"},
            "_deleted is int, expected boolean",
        ),
        ("card string, _deleted boolean", {}, "can't be deleted"),
        ("card interval day", {}, "is of type interval day, for which PostgreSQL has none"),
        (f"`{'x' * 64}` int", {}, "is not a column name"),
    ],
)
def test_results_that_do_not_fit_the_declaration_are_refused(settings, schema, table, said):
    with pytest.raises(TargetError, match=said):
        PostgresSink(
            PostgresTable("alerts", **table), StructType.fromDDL(schema), SinkOptions(settings, "any")
        )


def test_an_unknown_guarantee_and_no_lanes_are_refused(settings):
    schema = StructType.fromDDL(SIMPLE)
    with pytest.raises(TargetError, match="guarantee is 'once'"):
        PostgresSink(PostgresTable("a"), schema, SinkOptions(settings, "a", guarantee="once"))
    with pytest.raises(TargetError, match="0 lanes"):
        PostgresSink(PostgresTable("a"), schema, SinkOptions(settings, "a", lanes=0))
    with pytest.raises(SettingsError, match="no database is known"):
        PostgresSink(PostgresTable("a"), schema, SinkOptions(Settings(), "a"))
    with pytest.raises(SinkError, match="is not open"):
        PostgresSink(PostgresTable("a"), schema, SinkOptions(settings, "a")).epoch  # noqa: B018


def test_the_last_row_of_a_key_wins_and_deleted_keys_are_gone(spark, opened, sql):
    shape = "card string, day date, total bigint, _source string, _deleted boolean"
    sink = opened(shape, key=("card", "day"), write="upsert")
    name = sink.table.name

    def write(number, *rows):
        said = [(card, day, total, f"log/{number}", deleted) for card, day, total, deleted in rows]
        sink.write(frame(spark, shape, *said), batch(number, number, number + 1))
        return sql(f"SELECT card, day::text, total FROM {name} ORDER BY 1, 2")

    one, two = "2026-01-01", "2026-01-02"
    found = write(0, ("a", one, 1, False), ("b", one, 2, False), ("a", one, 3, None), ("a", two, 4, False))
    assert found == [("a", one, 3), ("a", two, 4), ("b", one, 2)]
    found = write(1, ("a", one, None, True), ("b", one, 5, True), ("b", one, 6, False), ("c", one, 7, False))
    assert found == [("a", two, 4), ("b", one, 6), ("c", one, 7)]
    assert write(2, ("c", one, 8, False), ("c", one, None, True)) == [("a", two, 4), ("b", one, 6)]
    columns = sql("SELECT column_name FROM information_schema.columns WHERE table_name = %s", name)
    assert {column for (column,) in columns} == {"card", "day", "total"}


def test_the_last_row_wins_across_many_rows_and_partitions(spark, opened, sql):
    """Rows of a key come from one partition, in order; a shuffle and several lanes must not mix them up."""
    sink = opened(SIMPLE, key="card", write="upsert", lanes=3)
    rows = spark.range(0, 30_000, 1, 4).selectExpr(
        "concat('c', spark_partition_id(), '-', id % 50) as card", "id as total"
    )
    sink.write(rows, batch(0, 0, 1))
    expected = dict(rows.groupBy("card").agg(F.max("total")).collect())
    assert dict(sql(f"SELECT card, total FROM {sink.table.name}")) == expected


def test_unchanged_rows_are_left_alone(spark, opened, sql):
    sink = opened(SIMPLE, key="card", write="upsert")
    sink.write(totals(spark, ("a", 1), ("b", None)), batch(0, 0, 1))
    before = dict(sql(f"SELECT card, xmin::text FROM {sink.table.name}"))
    sink.write(totals(spark, ("a", 2), ("b", None)), batch(1, 1, 2))
    after = dict(sql(f"SELECT card, xmin::text FROM {sink.table.name}"))
    assert before["a"] != after["a"]
    assert before["b"] == after["b"]


def test_a_table_of_keys_alone(spark, opened, sql):
    sink = opened("card string", key="card", write="upsert")
    for number in range(2):
        sink.write(frame(spark, "card string", ("a",), ("b",)), batch(number, number, number + 1))
    assert sorted(sql(f"SELECT card FROM {sink.table.name}")) == [("a",), ("b",)]


def test_names_are_taken_as_they_are(spark, settings, unique, sql):
    columns = ['say "hi"', "50%", "a.b", "Select", "été`s", "%s", "penstock", "last", "t"]
    rows = spark.createDataFrame(
        [(1, *columns[1:])],
        ", ".join(f"`{c.replace('`', '``')}` string" for c in columns).replace("string", "int", 1),
    )
    table = PostgresTable(f"public.Odd-{unique}", key=('say "hi"', "a.b"), write="upsert")
    sink = PostgresSink(table, rows.schema, SinkOptions(settings, f"odd'{unique}", lanes=1))
    sink.open()
    for number in range(2):
        sink.write(rows, batch(number, number, number + 1))
    assert sql(f'SELECT * FROM "Odd-{unique}"') == [(1, *columns[1:])]
    sink.close()


EXTREMES = [0, 1, -1, 10**15 + 1, -62135596800000000, -62135596799999999, 253402300799999999, 2**52 + 1]
WORDS = [
    "",
    " ",
    "NULL",
    "\\N",
    "\\.",
    'quo"te',
    "it's",
    "a,b",
    "l\nm",
    "l\r\nm",
    "\t",
    "ünï",
    "😀",
    "\\x41",
    "null",
]
FLOATS = [
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
    math.nan,
    math.inf,
    -math.inf,
    1 / 3,
    123456789.123456789,
]
TYPES = """
    n int, text string, flag boolean, small smallint, tiny tinyint, whole bigint, single float, real double,
    at timestamp, local timestamp_ntz, day date, money decimal(38, 10), raw binary,
    list array<decimal(10, 2)>, dict map<string, timestamp>,
    nested struct<a: string, b: array<int>, c: binary>
"""


def some_values(count):
    """Values of all types, one in eight of them null, as Spark makes them from plain columns."""
    dice = random.Random(7)

    def maybe(value):
        return None if dice.random() < 0.125 else value

    def text():
        return dice.choice(WORDS) + "".join(
            chr(dice.choice((dice.randrange(1, 128), dice.randrange(160, 0xD000))))
            for _ in range(dice.randrange(5))
        )

    for number in range(count):
        yield {
            "n": number,
            "text": maybe(text()),
            "flag": maybe(dice.random() < 0.5),
            "small": maybe(dice.randrange(-(2**15), 2**15)),
            "tiny": maybe(dice.randrange(-(2**7), 2**7)),
            "whole": maybe(dice.choice((2**63 - 1, -(2**63), dice.randrange(-(2**63), 2**63)))),
            "single": maybe(dice.choice((0.5, math.nan, math.inf, 16777216.0, -0.25))),
            "real": maybe(dice.choice((*FLOATS, dice.uniform(-1e9, 1e9)))),
            "at": maybe(dice.choice((*EXTREMES, dice.randrange(-(10**16), 10**16)))),
            "money": maybe(Decimal(dice.randrange(-(10**37), 10**37)).scaleb(-10)),
            "raw": maybe(dice.randbytes(dice.randrange(6))),
            "list": maybe(
                [maybe(Decimal(dice.randrange(10**9)).scaleb(-2)) for _ in range(dice.randrange(3))]
            ),
            "dict": maybe({text(): dice.choice(EXTREMES)}),
            "nested": maybe({"a": maybe(text()), "b": maybe([1, None]), "c": maybe(b"\0\xff")}),
        }


PLAIN = TYPES.replace("at timestamp, local timestamp_ntz, day date", "at bigint").replace(
    "string, timestamp", "string, bigint"
)


@pytest.fixture
def eastern(spark):
    """A session that is not in UTC: what is written must not depend on it."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def test_values_of_all_types_arrive_as_they_were(spark, opened, sql, eastern):
    values = list(some_values(400))
    micros = "timestamp_micros({})"
    rows = (
        spark.createDataFrame(values, PLAIN)
        .withColumn("at", F.expr(micros.format("at")))
        .withColumn("local", F.expr("to_utc_timestamp(at, 'Asia/Kolkata')").cast("timestamp_ntz"))
        .withColumn("dict", F.expr(f"transform_values(dict, (k, v) -> {micros.format('v')})"))
        .select("*", F.expr("cast(local as date)").alias("day"))
    )
    schema = StructType.fromDDL(TYPES)
    rows = rows.select(*schema.names)
    sink = opened(schema, key="n")
    sink.write(rows, batch(0, 0, 1))
    found = sql(f"""
        SELECT n, text, flag, small, tiny, whole, single, "real", (extract(epoch FROM at) * 1000000)::bigint,
            local = at AT TIME ZONE 'UTC', day = (at AT TIME ZONE 'UTC')::date,
            money, raw, list, dict::text, nested
        FROM {sink.table.name} ORDER BY n""")
    assert len(found) == len(values)
    for row, value in zip(found, values, strict=True):
        check_row(row, value)


def check_row(row, value):
    n, text, flag, small, tiny, whole, single, real, at, local, day, money, raw, list_, dict_, nested = row
    assert (n, text, flag, small, tiny, whole) == tuple(
        value[name] for name in ("n", "text", "flag", "small", "tiny", "whole")
    )
    assert (at, money, raw) == (value["at"], value["money"], value["raw"])
    assert local is day is (None if at is None else True)
    for seen, name in ((single, "single"), (real, "real")):
        assert repr(seen) == repr(value[name])
    wanted = value["list"] and [None if each is None else str(each) for each in value["list"]]
    assert list_ == (wanted if wanted is not None else value["list"])
    assert (dict_ is None) == (value["dict"] is None)
    if dict_ is not None:
        ((key, when),) = json.loads(dict_).items()
        assert (key, micros_of(when)) == next(iter(value["dict"].items()))
    assert nested == (value["nested"] and {**value["nested"], "c": value["nested"]["c"] and "AP8="})


def micros_of(text):
    """Read an ISO time in UTC with microseconds, without Python's limits."""
    assert text.endswith("Z")
    assert len(text) == len("2026-01-01T00:00:00.000000Z")
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_what_postgresql_can_not_hold_is_reported_with_its_column(spark, opened, sql):
    shape = "id string, note string, inner struct<a: string>"
    sink = opened(shape)

    def write(**columns):
        rows = frame(spark, shape, ("a", "b", {"a": "c"}))
        sink.write(rows.withColumns(columns), batch(0, 0, 1))

    with pytest.raises(DataError, match="column 'note' holds a NUL character"):
        write(note=F.concat(F.lit("a"), F.char(F.lit(0))))
    with pytest.raises(DataError, match="column inner"):
        write(inner=F.struct(F.char(F.lit(0)).alias("a")))
    with pytest.raises(DataError, match='null value in column "id"'):
        write(id=F.lit(None).cast("string"))
    with pytest.raises(DataError, match="invalid byte sequence"):
        write(note=F.expr("cast(x'C328' as string)"))
    assert sql(f"SELECT * FROM {sink.table.name}") == []
    write()
    assert sql(f"SELECT id, note FROM {sink.table.name}") == [("a", "b")]


def test_the_table_grows_with_the_flow(spark, opened, sql):
    sink = opened("id string, total bigint")
    sink.write(frame(spark, "id string, total bigint", ("a", 1)), batch(0, 0, 1))
    grown = "id string, total bigint, day date, tags array<string>"
    sink = opened(grown)
    sink.write(frame(spark, grown, ("b", 2, None, ["x"])), batch(1, 1, 2))
    sink = opened("id string")
    sink.write(frame(spark, "id string", ("c",)), batch(2, 2, 3))
    found = sql(f"SELECT id, total, day, tags FROM {sink.table.name} ORDER BY id")
    assert found == [("a", 1, None, None), ("b", 2, None, ["x"]), ("c", None, None, None)]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("TABLE {} (card text, total text)", "column 'total' of type text, the flow needs bigint"),
        ("TABLE {} (card text, total integer)", "column 'total' of type integer, the flow needs bigint"),
        ("TABLE {} (card text, total bigint, more int NOT NULL)", "'more' that must not be null"),
        ("VIEW {} AS SELECT 'a' AS card, 1::bigint AS total", "is not a table"),
    ],
)
def test_a_table_of_another_shape_is_refused(opened, sql, unique, made, said):
    sql("CREATE " + made.format(f"public.t{unique}"))
    with pytest.raises(TargetError, match=said):
        opened(SIMPLE)
    assert sql("SELECT * FROM penstock.ledger WHERE sink = %s", unique) == []


@pytest.mark.parametrize(
    ("made", "fits"),
    [
        ("card text, total bigint", False),
        ("card text PRIMARY KEY, total bigint", True),
        ("total bigint, card varchar NOT NULL UNIQUE, extra int, more int NOT NULL DEFAULT 5", True),
        ("card text, total bigint, UNIQUE (card, total)", False),
        ("card text UNIQUE DEFERRABLE, total bigint", False),
        ("card text, total bigint, id int GENERATED ALWAYS AS IDENTITY, UNIQUE (card) INCLUDE (total)", True),
    ],
)
def test_the_key_needs_a_unique_constraint(spark, opened, sql, unique, made, fits):
    sql(f"CREATE TABLE public.t{unique} ({made})")
    if not fits:
        with pytest.raises(TargetError, match=r"has no unique constraint on \(card\)"):
            opened(SIMPLE, key="card", write="upsert")
        return
    sink = opened(SIMPLE, key="card", write="upsert")
    for number in range(2):
        sink.write(totals(spark, ("a", number)), batch(number, number, number + 1))
    assert sql(f"SELECT card, total FROM t{unique}") == [("a", 1)]


def test_a_ledger_is_taken_over_whatever_became_of_the_table(spark, opened, settings, sql, unique):
    """The next version has another key and other columns, which this table is not to get."""
    before = opened(SIMPLE, key="card", write="upsert")
    table = PostgresTable(f"t{unique}", key="shop", write="upsert")
    schema = StructType.fromDDL("shop string, total string, more int")
    with pytest.raises(TargetError):
        PostgresSink(table, schema, SinkOptions(settings, unique)).open()
    PostgresSink(table, schema, SinkOptions(settings, unique)).take_over()
    with pytest.raises(FencedError):
        before.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    assert sql(f"SELECT * FROM t{unique}") == []
    sql(f"DROP TABLE t{unique}")
    (entry,) = PostgresSink(table, schema, SinkOptions(settings, unique)).take_over()
    assert entry.epoch == 3
    away = Settings(postgres=Secret("postgresql://127.0.0.1:1/none"))
    with pytest.raises(SinkError):
        PostgresSink(table, schema, SinkOptions(away, unique)).take_over()


def test_an_id_that_comes_again_is_an_error_and_no_secret(spark, opened, sql):
    """A plain insert, if it is asked for: nothing hides where it should fail."""
    sink = opened("id string, n int", repeated="refuse")
    rows = frame(spark, "id string, n int", ("a", 1))
    sink.write(rows, batch(0, 0, 1))
    with pytest.raises(DataError, match=r"Key \(id\)=\(a\) already exists"):
        sink.write(rows, batch(1, 1, 2))
    assert sql(f"SELECT * FROM {sink.table.name}") == [("a", 1)]


def test_at_least_once_does_not_ask_the_ledger(spark, opened, sql):
    keyless = opened(SIMPLE, guarantee="at-least-once")
    for number in (0, 0, 5):
        keyless.write(totals(spark, ("a", number)), batch(number, number, number + 1))
    assert sorted(sql(f"SELECT total FROM {keyless.table.name}")) == [(0,), (0,), (5,)]
    zombie = keyless
    opened(SIMPLE, guarantee="at-least-once")
    with pytest.raises(FencedError):
        zombie.write(totals(spark, ("a", 6)), batch(6, 6, 7))


def test_at_least_once_keeps_one_of_each_id(spark, opened, sql):
    sink = opened("id string, n int", guarantee="at-least-once")
    for _ in range(2):
        sink.write(frame(spark, "id string, n int", ("a", 1)), batch(0, 0, 1))
    assert sql(f"SELECT * FROM {sink.table.name}") == [("a", 1)]


def test_at_most_once_may_lose_but_never_doubles(spark, opened, sql, monkeypatch):
    sink = opened(SIMPLE, guarantee="at-most-once")
    with monkeypatch.context() as patched:
        crash_at(patched, "sink.postgres.before-merge")
        with pytest.raises(Crash):
            sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    sink = opened(SIMPLE, guarantee="at-most-once")
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    sink.write(totals(spark, ("a", 2)), batch(1, 1, 2))
    assert sql(f"SELECT total FROM {sink.table.name}") == [(2,)]


def test_rows_other_than_described_are_refused(spark, opened):
    sink = opened(SIMPLE)
    for shape, said in (
        ("card string", "'total' of the rows is missing"),
        ("card string, total int", "is int"),
    ):
        with pytest.raises(TargetError, match=said):
            sink.write(frame(spark, shape), batch(0, 0, 1))


def test_staging_is_dropped_after_the_commit_and_leftovers_at_the_next_opening(
    spark, opened, sql, monkeypatch
):
    before = staging_tables(sql)
    sink = opened(SIMPLE)
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    assert staging_tables(sql) == before
    with monkeypatch.context() as patched:
        crash_at(patched, "sink.postgres.committed")
        with pytest.raises(Crash):
            sink.write(totals(spark, ("a", 2)), batch(1, 1, 2))
    assert len(staging_tables(sql) - before) == 1
    opened(SIMPLE)
    assert staging_tables(sql) == before


def only_staging(sql, before):
    (name,) = staging_tables(sql) - before
    return f"penstock.{name}"


def test_rows_that_staging_has_lost_are_noticed(spark, opened, sql, at_point):
    """A server that crashes empties its unlogged tables."""
    before = staging_tables(sql)
    sink = opened(SIMPLE)
    rows = totals(spark, *((f"c{number}", number) for number in range(1200)))
    at_point("sink.postgres.before-merge", lambda: sql(f"TRUNCATE {only_staging(sql, before)}"))
    with pytest.raises(SinkError, match="staging holds 0 of 1,200 rows: the database restarted"):
        sink.write(rows, batch(0, 0, 1))
    sink.write(rows, batch(0, 0, 1))
    assert sql(f"SELECT count(*) FROM {sink.table.name}") == [(1200,)]


def test_rows_of_another_attempt_are_not_merged(spark, opened, sql, at_point):
    before = staging_tables(sql)
    sink = opened(SIMPLE)

    def double():
        table = only_staging(sql, before)
        sql(
            f'INSERT INTO {table} SELECT "penstock lane", 999999, "penstock ordinal", card, total '
            f"FROM {table}"
        )

    at_point("sink.postgres.before-merge", double)
    sink.write(totals(spark, ("a", 1), ("b", 2)), batch(0, 0, 1))
    assert sorted(sql(f"SELECT card, total FROM {sink.table.name}")) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("point", ["before-merge", "merged", "committed"])
def test_a_lost_connection_is_made_again(spark, opened, sql, unique, at_point, point):
    """What the lost transaction came to is read from the ledger, not guessed."""

    def cut():
        sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s",
            f"penstock {unique}",
        )

    sink = opened(SIMPLE)
    at_point(f"sink.postgres.{point}", cut)
    if point == "committed":
        sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    else:
        with pytest.raises(SinkError, match="terminating connection"):
            sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    sink.write(totals(spark, ("a", 2)), batch(1, 1, 2))
    assert sorted(sql(f"SELECT total FROM {sink.table.name}")) == [(1,), (2,)]


def test_a_zombie_whose_staging_was_dropped_hears_that_it_is_one(spark, opened, at_point):
    zombie = opened(SIMPLE)
    at_point("sink.postgres.before-merge", lambda: opened(SIMPLE))
    with pytest.raises(FencedError):
        zombie.write(totals(spark, ("a", 1)), batch(0, 0, 1))


def test_a_key_that_somebody_else_writes_at_the_same_moment_is_written_on_the_second_try(
    spark, settings, opened, sql, at_point
):
    sink = opened(SIMPLE, key="card", write="upsert")
    with psycopg.connect(reveal(settings.postgres)) as other:

        def meddle():
            other.execute(f"INSERT INTO {sink.table.name} VALUES ('a', 99)")
            Timer(1, other.commit).start()

        at_point("sink.postgres.before-merge", meddle)
        with pytest.raises(SinkError, match=r"another writer put the same row .* Key \(card\)=\(a\)"):
            sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    assert sql(f"SELECT card, total FROM {sink.table.name}") == [("a", 1)]


def test_many_may_open_at_once(settings, unique):
    schema = StructType.fromDDL(SIMPLE)
    sinks = [
        PostgresSink(
            PostgresTable(f"t{unique}"), schema, SinkOptions(settings, f"{unique}.{number % 2}", lanes=1)
        )
        for number in range(8)
    ]
    with ThreadPoolExecutor(len(sinks)) as pool:
        entries = [entry for (entry,) in pool.map(lambda sink: sink.open(), sinks)]
    assert sorted(entry.epoch for entry in entries) == [1, 1, 2, 2, 3, 3, 4, 4]
    for sink in sinks:
        sink.close()


def test_the_last_entry_can_be_asked_for(spark, settings, opened, unique):
    sink = opened(SIMPLE)
    assert last_entry(settings, sink.table, f"{unique}.other") is None
    assert last_entry(settings, sink.table, unique).batch is None
    taken = Batch("first", 0, {}, {"log": {0: 2**40, 11: 3}, "other": {}})
    sink.write(totals(spark), taken)
    assert last_entry(settings, sink.table, unique).batch == taken


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://penstock:{}@127.0.0.1:1/penstock", "can't be reached: Connection refused"),
        ("postgresql://penstock:{}@nowhere.invalid/penstock", "the address leads nowhere"),
        ("postgresql://penstock:{}/x@127.0.0.1/penstock", "can't be re"),
        ("postgresql://penstock:x@{}@127.0.0.1/penstock", "can't be re"),
        ("host=127.0.0.1 password={} {}", "can't be read"),
        ("password authentication", "password authentication failed"),
    ],
)
def test_no_error_shows_the_password(settings, opened, address, said):
    hidden = "hunter2"
    right = reveal(settings.postgres)
    password = right.split(":")[2].split("@")[0]
    given = (
        right.replace(password, hidden)
        if address == "password authentication"
        else address.format(hidden, hidden)
    )
    with pytest.raises(PenstockError, match=said) as caught:
        opened(SIMPLE, dsn=given)
    assert hidden not in "".join(traceback.format_exception(caught.value))


def test_an_executor_that_can_not_connect_says_so_without_the_password(spark, opened, monkeypatch):
    sink = opened(SIMPLE)
    wrong = Secret("postgresql://penstock:hunter2@127.0.0.1:1/penstock")
    monkeypatch.setattr(
        "penstock.targets.postgres.sink.Lane", lambda sink, _, staging: Lane(sink, wrong, staging)
    )
    with pytest.raises(SinkError, match="can't be reached: Connection refused") as caught:
        sink.write(totals(spark, ("a", 1)), batch(0, 0, 1))
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


def test_a_comparison_touches_no_table_but_its_own(spark, settings, sql, unique):
    table = PostgresTable(f"t{unique}", key="card", write="upsert")
    name = f"public.{table.name}"
    sql(f"CREATE TABLE {name} (card text PRIMARY KEY, total bigint)")
    sql(f"INSERT INTO {name} VALUES ('a', 1), ('b', 2)")
    sql(f"CREATE TABLE {name}__verify AS SELECT 'precious' AS what")
    before = sql("SELECT schemaname, tablename FROM pg_tables")
    rows = totals(spark, ("a", 1), ("c", 3))
    compared = compare_table(table, rows, settings, unique)
    assert (compared.expected, compared.found, compared.missing, compared.unexpected) == (2, 2, 1, 1)
    assert sql(f"SELECT what FROM {name}__verify") == [("precious",)]
    assert set(sql("SELECT schemaname, tablename FROM pg_tables")) <= {*before, ("penstock", "ledger")}

    def meanwhile(*_):
        with pytest.raises(SinkError, match="verified by another process"):
            compare_table(table, rows, settings, unique)
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PostgresSink, "open", meanwhile)
        with pytest.raises(Crash):
            compare_table(table, rows, settings, unique)
    assert compare_table(table, rows, settings, unique) == compared
