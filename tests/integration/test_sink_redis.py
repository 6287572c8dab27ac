"""Redis as a target, on a real server: the contracts of sinks, and what is its own."""

import json
import traceback
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import (
    AuthenticationError,
    DataError,
    FencedError,
    LedgerError,
    SettingsError,
    SinkError,
    TargetError,
)
from penstock.log.ledger import Entry
from penstock.settings import Settings
from penstock.targets import SinkOptions
from penstock.targets.redis import (
    RedisHashes,
    RedisInvalidation,
    RedisSortedSet,
    current_prefix,
    key_of,
    read_hash,
)
from penstock.targets.redis.client import connect
from penstock.targets.redis.keys import PREFIXES, ledger_key, leftovers_key
from penstock.targets.redis.lane import RedisLanes
from penstock.targets.target import Inspection
from penstock.testing.lane_contract import LaneContract
from penstock.testing.sink_contract import ExactlyOnceContract, batch, numbered
from penstock.testing.upsert_contract import SCHEMA, UpsertContract

pytest_plugins = ("tests.integration.redis_server",)
SIMPLE = "card string, total bigint"


@pytest.fixture(scope="session")
def settings(redis_settings):
    """No broker and no database are needed here."""
    return redis_settings


def hashes(client, prefix):
    return [client.hgetall(key) for key in client.scan_iter(f"{prefix}:*", _type="hash")]


class TestRedisHashes(ExactlyOnceContract):
    opening = ("sink.redis.claimed",)
    writing = ("sink.redis.written",)

    def make_sink(self, spark, settings, unique, **options):
        self.settings, self.prefix = settings, f"n{unique}"
        return RedisHashes(self.prefix).sink(
            StructType.fromDDL("id int"), SinkOptions(settings, unique, **options)
        )

    def rows(self, spark, numbers):
        return numbered(spark, numbers)

    def contents(self, sink):
        with closing(connect(self.settings.url("redis"))) as client:
            return [int(row[b"id"]) for row in hashes(client, self.prefix)]


class TestRedisUpserts(UpsertContract):
    def make_sink(self, spark, settings, unique):
        self.settings, self.prefix = settings, f"u{unique}"
        target = RedisHashes(self.prefix, key="key")
        return target.sink(StructType.fromDDL(SCHEMA), SinkOptions(settings, unique))

    def table(self, sink):
        with closing(connect(self.settings.url("redis"))) as client:
            found = hashes(client, self.prefix)
        return {row[b"key"].decode(): int(row[b"value"]) for row in found}


def lanes_of(settings, unique, at_once=50_000):
    target = RedisHashes(f"l{unique}", at_once=at_once)
    layout = target.layout(StructType.fromDDL("id int"))
    return RedisLanes(target.address(settings), unique, layout, at_once=at_once)


def rows_of(numbers):
    texts = pa.array([str(number).encode() for number in numbers], pa.binary())
    return pa.RecordBatch.from_pydict({"key": texts, "gone": pa.nulls(len(texts), pa.binary()), "v0": texts})


class TestRedisLanes(LaneContract):
    def make_lanes(self, settings, unique):
        self.settings, self.prefix = settings, f"l{unique}"
        return lanes_of(settings, unique)

    def batch(self, numbers):
        return rows_of(numbers)

    def contents(self):
        with closing(connect(self.settings.url("redis"))) as client:
            return [int(row[b"id"]) for row in hashes(client, self.prefix)]


class TestRedisLanesInPieces(TestRedisLanes):
    """Three rows fit into a script."""

    def make_lanes(self, settings, unique):
        self.settings, self.prefix = settings, f"l{unique}"
        return lanes_of(settings, unique, at_once=3)


@pytest.fixture
def opened(settings, unique):
    """Make a sink of a target, and open it."""
    made = []

    def open_sink(target, schema, **options):
        schema = StructType.fromDDL(schema) if isinstance(schema, str) else schema
        sink = target.sink(schema, SinkOptions(settings, **{"id": unique} | options))
        made.append(sink)
        sink.open()
        return sink

    yield open_sink
    for sink in made:
        sink.close()


@pytest.fixture
def inspection(settings):
    return Inspection("flow", settings, lambda _: None, lambda: None)


def frame(spark, shape, *rows):
    """Rows in one partition, and so in an order; made without Python workers, which takes less time."""
    listed = json.dumps([dict(zip(StructType.fromDDL(shape).names, row, strict=True)) for row in rows])
    return spark.range(1).select(F.inline(F.from_json(F.lit(listed), f"array<struct<{shape}>>")))


# ---- values ----

ODD = """
    named_struct(
      'id', 'a:b', 'text', 'naïve "quoted"\\n☂', 'empty', '', 'nothing', cast(null as string),
      'yes', true, 'tiny', cast(-128 as tinyint), 'whole', 9223372036854775807,
      'exact', cast('12345678901234567890.123456789012345678' as decimal(38,18)),
      'zero', cast(0 as decimal(38,18)),
      'real', cast('0.1' as float), 'double', 0.1D + 0.2D, 'nan', double('NaN'),
      'endless', double('-Infinity'),
      'day', date'0001-01-01', 'at', timestamp'2024-03-31 00:30:00.000001Z',
      'far', timestamp'1899-12-31 23:59:59.999999Z', 'local', timestamp_ntz'2024-03-31 02:30:00',
      'raw', X'00FF5C3A', 'list', array(1, null, 3),
      'map', map('k', cast(1.10 as decimal(10,2)), 'gone', null),
      'nested', named_struct('n', cast(null as int), 'd', cast('0.10' as decimal(5,2)),
                             'at', timestamp'2024-01-01 00:00:00Z', 'raw', X'FF'))"""


def odd_rows(spark):
    return spark.range(1).select(F.expr(ODD).alias("row")).select("row.*")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_type_comes_back_as_it_was(spark, settings, opened, redis, inspection, unique, zone):
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        rows, target = odd_rows(spark), RedisHashes(f"o{unique}")
        opened(target, rows.schema).write(rows, batch(0, 0, 1))
        held = redis.hgetall(key_of(f"o{unique}", "a:b"))
        assert held[b"exact"] == b"12345678901234567890.123456789012345678"
        assert held[b"zero"] == b"0.000000000000000000"
        assert held[b"at"] == b"2024-03-31T00:30:00.000001Z"
        assert held[b"far"] == b"1899-12-31T23:59:59.999999Z"
        assert held[b"local"] == b"2024-03-31T02:30:00.000000"
        assert (held[b"yes"], held[b"raw"], held[b"empty"]) == (b"true", b"\x00\xff\\:", b"")
        assert (held[b"day"], held[b"tiny"], held[b"nan"]) == (b"0001-01-01", b"-128", b"NaN")
        assert b"nothing" not in held
        assert json.loads(held[b"map"]) == {"k": "1.10", "gone": None}
        compared = target.compare(rows, inspection)
        assert (compared.expected, compared.found, compared.missing, compared.unexpected) == (1, 1, 0, 0)
        found = target.contents(spark, rows.schema, inspection)
        assert found.drop("nan").collect() == rows.drop("nan").collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_python_reads_what_is_written(spark, opened, redis, unique):
    rows = spark.range(1).selectExpr(
        "'a' id",
        "cast('1.50' as decimal(9,2)) price",
        "timestamp'2024-01-01 00:00:00Z' at",
        "date'2024-01-02' day",
    )
    opened(RedisHashes(f"o{unique}"), rows.schema).write(rows, batch(0, 0, 1))
    held = {name.decode(): text.decode() for name, text in redis.hgetall(f"o{unique}:a").items()}
    assert Decimal(held["price"]) == Decimal("1.50")
    assert datetime.fromisoformat(held["at"]) == datetime(2024, 1, 1, tzinfo=UTC)
    assert date.fromisoformat(held["day"]) == date(2024, 1, 2)


@pytest.mark.parametrize("shape", ["id string, x interval day to second", "id string, x map<int, string>"])
def test_a_type_that_could_not_be_read_back_is_refused(settings, unique, shape):
    with pytest.raises(TargetError, match="has no text"):
        RedisHashes("p").sink(StructType.fromDDL(shape), SinkOptions(settings, unique))


# ---- keys ----


def test_keys_of_several_columns_never_meet(spark, opened, redis, unique):
    names = ["a", "a:", ":a", "a\\", "\\:a", "", ":", "\\", "a:b", "ü:☂"]
    rows = [(first, second) for first in names for second in names]
    target = RedisHashes(f"k{unique}", key=("x", "y"))
    opened(target, "x string, y string").write(frame(spark, "x string, y string", *rows), batch(0, 0, 1))
    found = {(row[b"x"].decode(), row[b"y"].decode()) for row in hashes(redis, f"k{unique}")}
    assert found == set(rows)
    assert all(redis.exists(key_of(f"k{unique}", *row)) for row in rows)


@pytest.mark.parametrize("key", ["card", ("card", "total")])
def test_a_key_that_is_null_is_refused(spark, opened, redis, unique, key):
    sink = opened(RedisHashes(f"k{unique}", key=key), SIMPLE)
    with pytest.raises(DataError, match=r"card.* is null in 1 of 1 rows"):
        sink.write(frame(spark, SIMPLE, (None, 1)), batch(0, 0, 1))
    assert hashes(redis, f"k{unique}") == []


def test_a_row_replaces_the_former_one_wholly(spark, opened, redis, unique):
    sink = opened(RedisHashes(f"k{unique}", key="card"), SIMPLE)
    redis.set(f"k{unique}:b", "of another kind")
    sink.write(frame(spark, SIMPLE, ("a", 1), ("b", 1)), batch(0, 0, 1))
    sink.write(frame(spark, SIMPLE, ("a", None)), batch(1, 1, 2))
    assert redis.hgetall(f"k{unique}:a") == {b"card": b"a"}
    assert redis.hgetall(f"k{unique}:b") == {b"card": b"b", b"total": b"1"}


def test_only_some_columns_are_written(spark, opened, redis, unique, inspection):
    target = RedisHashes(f"k{unique}", key="card", columns=("card",))
    rows = frame(spark, SIMPLE, ("a", 1))
    opened(target, SIMPLE).write(rows, batch(0, 0, 1))
    assert redis.hgetall(f"k{unique}:a") == {b"card": b"a"}
    assert target.compare(rows, inspection).missing == 0


@pytest.mark.long
def test_a_hash_of_very_many_fields(spark, opened, redis, unique):
    names = [f"c{number}" for number in range(2100)]
    rows = spark.range(1).select("id", *(F.lit(1).alias(name) for name in names))
    opened(RedisHashes(f"k{unique}"), rows.schema).write(rows, batch(0, 0, 1))
    assert redis.hlen(f"k{unique}:0") == 2101


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: RedisHashes(""), "prefix of keys is ''"),
        (lambda: RedisHashes("penstock:x"), "prefix of keys"),
        (lambda: RedisHashes("x", key=()), "need a key"),
        (lambda: RedisHashes("x", key=("a", "a")), "twice"),
        (lambda: RedisHashes("x", key="a", columns=("b",)), "not among columns"),
        (lambda: RedisHashes("x", at_once=0), "at_once is 0"),
        (lambda: RedisSortedSet("x", member="a", score="a"), "twice"),
        (lambda: RedisSortedSet("x", member="a", score="b", keep=0), "keep is 0"),
        (lambda: RedisSortedSet("x", member="a", score="b", best="most"), "best is 'most'"),
        (lambda: RedisInvalidation("x", key=()), "needs a key"),
        (lambda: RedisInvalidation("x").beside("y"), "holds nothing"),
    ],
)
def test_a_declaration_checks_itself(make, problem):
    with pytest.raises(TargetError, match=problem):
        make()


# ---- expiry ----


def test_hashes_expire(spark, opened, redis, unique, inspection):
    target = RedisHashes(f"e{unique}", key="card", expire="1 hour")
    sink, rows = opened(target, SIMPLE), frame(spark, SIMPLE, ("a", 1), ("b", 1))
    sink.write(rows, batch(0, 0, 1))
    assert 3_500_000 < redis.pttl(f"e{unique}:a") <= 3_600_000
    redis.pexpire(f"e{unique}:a", 5)
    sink.write(frame(spark, SIMPLE, ("b", 1)), batch(1, 1, 2))
    assert redis.exists(f"e{unique}:a") == 0
    compared = target.compare(rows, inspection)
    assert (compared.expected, compared.found, compared.missing) == (2, 1, 0)


# ---- sorted sets ----

POINTS = "player string, points double, country string, _deleted boolean"


def test_a_leaderboard_for_each_group(spark, opened, redis, unique, inspection):
    target = RedisSortedSet(f"s{unique}", member="player", score="points", by="country")
    sink = opened(target, POINTS)
    first = [("ada", 10.5, "de", None), ("bob", 7.0, "de", None), ("cid", 1e300, "fr", None)]
    sink.write(frame(spark, POINTS, *first), batch(0, 0, 1))
    second = [("ada", 3.0, "de", False), ("bob", None, "de", True), ("dan", -0.0, "a:b", None)]
    sink.write(frame(spark, POINTS, *second), batch(1, 1, 2))
    assert redis.zrange(f"s{unique}:de", 0, -1, withscores=True) == [(b"ada", 3.0)]
    assert redis.zrange(f"s{unique}:fr", 0, -1, withscores=True) == [(b"cid", 1e300)]
    assert redis.exists(f"s{unique}:a:b")
    due = frame(spark, POINTS, *first).union(frame(spark, POINTS, *second)).coalesce(1)
    compared = target.compare(due, inspection)
    assert (compared.expected, compared.found, compared.missing, compared.unexpected) == (3, 3, 0, 0)
    redis.zadd(f"s{unique}:fr", {"mallory": 1})
    assert target.compare(due, replace(inspection, possible=lambda: due)).unexpected == 1


@pytest.mark.parametrize("best", ["highest", "lowest"])
def test_a_leaderboard_keeps_the_best(spark, opened, redis, unique, inspection, best):
    shape = "player string, points bigint"
    target = RedisSortedSet(f"s{unique}", member="player", score="points", keep=3, best=best)
    sink = opened(target, shape)
    rows = [(f"p{number}", number // 2) for number in range(10)]
    sink.write(frame(spark, shape, *rows[:6]), batch(0, 0, 1))
    sink.write(frame(spark, shape, *rows[6:]), batch(1, 1, 2))
    wanted = {"highest": [b"p7", b"p8", b"p9"], "lowest": [b"p0", b"p1", b"p2"]}[best]
    assert redis.zrange(f"s{unique}", 0, -1) == wanted
    compared = target.compare(frame(spark, shape, *rows), inspection)
    assert (compared.expected, compared.found, compared.missing, compared.unexpected) == (3, 3, 0, 0)


@pytest.mark.parametrize(("shape", "score"), [("long", None), ("long", 2**53 + 1), ("double", "NaN")])
def test_a_score_that_is_none_is_refused(spark, opened, redis, unique, shape, score):
    shape = f"player string, points {shape}"
    sink = opened(RedisSortedSet(f"s{unique}", member="player", score="points"), shape)
    with pytest.raises(DataError, match="points is null, no number, or beyond 2\\^53 in 1 of 1 rows"):
        sink.write(frame(spark, shape, ("ada", score)), batch(0, 0, 1))
    assert not redis.exists(f"s{unique}")


def test_a_script_that_fails_in_the_midst_does_not_advance_the_ledger(
    spark,
    opened,
    redis,
    unique,
):
    """Redis undoes nothing; the batch comes again, and the same rows do no harm."""
    target = RedisSortedSet(f"s{unique}", member="player", score="points", by="country")
    shape = "player string, points double, country string"
    sink = opened(target, shape, lanes=1)
    redis.set(f"s{unique}:fr", "no set")
    rows = frame(spark, shape, ("ada", 1.0, "de"), ("bob", 2.0, "fr"), ("cid", 3.0, "de"))
    with pytest.raises(TargetError, match="WRONGTYPE"):
        sink.write(rows, batch(0, 0, 1))
    assert redis.zrange(f"s{unique}:de", 0, -1) == [b"ada"]
    assert sink.entries()[0].batch is None
    redis.delete(f"s{unique}:fr")
    sink.write(rows, batch(0, 0, 1))
    assert redis.zrange(f"s{unique}:de", 0, -1) == [b"ada", b"cid"]
    assert sink.entries()[0].batch == batch(0, 0, 1)


# ---- invalidation ----


def test_keys_of_a_cache_are_invalidated(spark, settings, opened, redis, unique):
    target = RedisInvalidation(f"c{unique}", key="card", channel=f"stale{unique}")
    sink = opened(target, f"{SIMPLE}, _deleted boolean")
    redis.mset({f"c{unique}:{name}": "cached" for name in "abc"})
    heard = redis.pubsub(ignore_subscribe_messages=True)
    heard.subscribe(f"stale{unique}")
    assert heard.get_message(timeout=5) is None
    rows = frame(spark, f"{SIMPLE}, _deleted boolean", ("a", 1, None), ("b", 1, True), ("nobody", 1, None))
    sink.write(rows, batch(0, 0, 1))
    assert list(redis.scan_iter(f"c{unique}:*")) == [f"c{unique}:c".encode()]
    messages = [heard.get_message(timeout=5)["data"] for _ in range(3)]
    assert sorted(messages) == [f"c{unique}:{name}".encode() for name in ("a", "b", "nobody")]
    redis.set(f"c{unique}:a", "cached again")
    sink.write(rows, batch(0, 0, 1))
    assert redis.exists(f"c{unique}:a"), "a batch that was written is not written again"


# ---- lanes, tokens and trouble ----


@pytest.fixture
def lanes(settings, unique):
    made = lanes_of(settings, unique)
    made.prepare(1)
    return made


def test_an_older_token_writes_nothing(lanes, redis, unique):
    old, new = lanes.open(0), lanes.open(0)
    with pytest.raises(SinkError, match="opened by another task"):
        old.write([rows_of([1])], Entry(1, batch(0, 0, 1)))
    new.write([rows_of([2])], Entry(2, batch(0, 0, 1)))
    with pytest.raises(FencedError):
        lanes_old_write(old)
    assert [row[b"id"] for row in hashes(redis, f"l{unique}")] == [b"2"]


def lanes_old_write(lane):
    lane._token = b"1"
    lane.write([rows_of([3])], Entry(1, batch(1, 1, 2)))


def test_the_number_of_lanes_is_frozen(lanes):
    assert lanes.prepare(7) == 1


def test_scripts_that_redis_has_forgotten_are_sent_again(lanes, redis, unique):
    lane = lanes.open(0)
    lane.write([], Entry(1))
    redis.script_flush()
    lane.write([rows_of([1])], Entry(1, batch(0, 0, 1)))
    assert len(hashes(redis, f"l{unique}")) == 1


def test_a_connection_that_is_cut_is_made_again_and_the_entry_decides(lanes, redis, unique, monkeypatch):
    """Whether the script ran can't be known without an answer: the lane is opened again and looked at."""
    from redis.exceptions import ConnectionError

    lane = lanes.open(0)
    real = lane._client.execute_command

    def cut(*arguments):
        real(*arguments)
        raise ConnectionError("Connection closed by server.")

    monkeypatch.setattr(lane._client, "execute_command", cut)
    with pytest.raises(SinkError, match=r"did not write lane 0.*Connection closed"):
        lane.write([rows_of([1])], Entry(1, batch(0, 0, 1)))
    monkeypatch.undo()
    with pytest.raises(SinkError, match="given up"):
        lane.write([rows_of([2])], Entry(1, batch(1, 1, 2)))
    assert lanes.open(0).entry == Entry(1, batch(0, 0, 1))
    assert [row[b"id"] for row in hashes(redis, f"l{unique}")] == [b"1"]


def test_a_server_without_memory_is_asked_again(lanes, redis, unique):
    lane = lanes.open(0)
    redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(SinkError, match="maxmemory"):
            lane.write([rows_of([1])], Entry(1, batch(0, 0, 1)))
    finally:
        redis.config_set("maxmemory", 0)
    lane = lanes.open(0)
    assert lane.entry == Entry()
    lane.write([rows_of([1])], Entry(1, batch(0, 0, 1)))
    assert len(hashes(redis, f"l{unique}")) == 1


def test_a_replica_is_refused(lanes, redis):
    lane = lanes.open(0)
    redis.replicaof("127.0.0.1", 1)
    try:
        with pytest.raises(SinkError, match="leads to a replica"):
            lane.write([rows_of([1])], Entry(1, batch(0, 0, 1)))
    finally:
        redis.replicaof("NO", "ONE")


def test_a_server_that_evicts_rows_is_refused(settings, lanes, redis, unique):
    redis.config_set("maxmemory", "1gb")
    redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(TargetError, match="allkeys-lru"):
            lanes.prepare(1)
        schema = StructType.fromDDL("id int")
        RedisInvalidation(f"c{unique}").sink(schema, SinkOptions(settings, f"{unique}.c")).open()
    finally:
        redis.config_set("maxmemory-policy", "noeviction")
        redis.config_set("maxmemory", 0)


def test_an_emptied_server_is_noticed(lanes, redis):
    redis.delete(ledger_key(lanes.sink))
    with pytest.raises(LedgerError, match="is gone: Redis was emptied"):
        lanes.open(0)


def test_prefixes_that_overlap_are_refused(settings, lanes, unique):
    inner = RedisHashes(f"l{unique}:more").layout(StructType.fromDDL("id int"))
    with pytest.raises(TargetError, match="overlap"):
        replace(lanes, sink=f"{unique}.2", layout=inner).prepare(1)


@pytest.mark.parametrize(
    ("url", "error", "problem"),
    [
        ("redis://:hunter2@127.0.0.1:1/0", SinkError, "Connection refused"),
        ("redis://:hunter2@nowhere.invalid:6379/0", SinkError, "did not prepare"),
        ("what://:hunter2@h", SettingsError, "can't be parsed"),
        ("redis://:hunter2@h:port/0", SettingsError, "can't be parsed"),
        ("right", AuthenticationError, "invalid username-password"),
    ],
)
def test_no_error_shows_the_password(settings, unique, url, error, problem):
    right = settings.url("redis").value
    url = f"redis://:hunter2@{right.rpartition('@')[2]}" if url == "right" else url
    given = Settings(connections={"cache": {"url": url}})
    target = RedisHashes("p", connection="cache")
    with pytest.raises(error, match=problem) as caught:
        target.sink(StructType.fromDDL("id int"), SinkOptions(given, unique)).open()
    assert "hunter2" not in repr(target)
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in shown


def test_without_a_redis_the_error_says_how_to_get_one(unique):
    with pytest.raises(SettingsError, match="penstock up --with redis"):
        RedisHashes("p").address(Settings())


# ---- rebuilding ----


def put(spark, sink, number, *rows):
    sink.write(frame(spark, SIMPLE, *rows), batch(number, number, number + 1))


def test_a_rebuilt_target_is_swapped_in(spark, settings, opened, redis, unique, inspection):
    target = RedisHashes(f"r{unique}", key="card")
    live = opened(target, SIMPLE)
    put(spark, live, 0, *((f"card{number}", 1) for number in range(2500)))
    redis.set(f"r{unique}:application", "not ours")
    rebuilt = target.beside("rebuilt2")
    put(spark, opened(rebuilt, SIMPLE, id=f"{unique}.rebuilt2"), 0, ("a", 1), ("b", 2))
    assert current_prefix(redis, target.prefix) == target.prefix
    assert len(hashes(redis, target.prefix)) == 2500
    for _ in range(2):
        target.swap(rebuilt, settings)
    assert current_prefix(redis, target.prefix) == f"r{unique}@rebuilt2"
    assert hashes(redis, target.prefix) == []
    assert redis.get(f"r{unique}:application") == b"not ours"
    put(spark, live, 1, ("b", 3), ("c", 3))  # the flow goes on, in the new place
    assert read_hash(redis, target.prefix, "b") == {b"card": b"b", b"total": b"3"}
    assert read_hash(redis, target.prefix, "card1") == {}
    compared = target.compare(frame(spark, SIMPLE, ("a", 1), ("b", 3), ("c", 3)), inspection)
    assert (compared.expected, compared.found, compared.missing) == (3, 3, 0)


def test_a_swap_that_was_killed_is_completed(spark, settings, opened, redis, unique, monkeypatch):
    target = RedisHashes(f"r{unique}", key="card")
    put(spark, opened(target, SIMPLE), 0, ("old", 1))
    rebuilt = target.beside("rebuilt2")
    put(spark, opened(rebuilt, SIMPLE, id=f"{unique}.rebuilt2"), 0, ("new", 1))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("penstock.targets.redis.prefixes.remove", killed)
        with pytest.raises(KeyboardInterrupt):
            target.swap(rebuilt, settings)
    assert read_hash(redis, target.prefix, "new")
    assert redis.smembers(leftovers_key(target.prefix)) == {target.prefix.encode()}
    target.swap(rebuilt, settings)
    assert not redis.exists(f"r{unique}:old", leftovers_key(target.prefix))
    assert read_hash(redis, target.prefix, "new")


def test_a_place_beside_is_empty_and_never_the_one_that_is_seen(spark, settings, opened, redis, unique):
    target = RedisHashes(f"r{unique}", key="card")
    put(spark, opened(target, SIMPLE), 0, ("old", 1))
    rebuilt = target.beside("again")
    put(spark, opened(rebuilt, SIMPLE, id=f"{unique}.a"), 0, ("given up", 1))
    put(spark, opened(rebuilt, SIMPLE, id=f"{unique}.b"), 0, ("new", 1))
    assert len(hashes(redis, rebuilt.prefix)) == 1
    target.swap(rebuilt, settings)
    with pytest.raises(TargetError, match=r"is what readers of .* see already"):
        opened(rebuilt, SIMPLE, id=f"{unique}.c")
    other = target.beside("other")
    put(spark, opened(other, SIMPLE, id=f"{unique}.d"), 0, ("newest", 1))
    target.swap(other, settings)
    assert [row[b"card"] for row in hashes(redis, other.prefix)] == [b"newest"]
    assert hashes(redis, rebuilt.prefix) == []
    assert redis.smembers(PREFIXES) & {rebuilt.prefix.encode(), other.prefix.encode()} == {
        other.prefix.encode()
    }
    with pytest.raises(TargetError, match="not beside"):
        target.swap(RedisHashes("another", key="card"), settings)


def test_a_leaderboard_is_swapped(spark, settings, opened, redis, unique):
    target = RedisSortedSet(f"r{unique}", member="card", score="total")
    live, rebuilt = opened(target, SIMPLE), target.beside("rebuilt2")
    put(spark, live, 0, ("old", 1))
    put(spark, opened(rebuilt, SIMPLE, id=f"{unique}.rebuilt2"), 0, ("new", 1))
    target.swap(rebuilt, settings)
    put(spark, live, 1, ("newer", 2))
    assert not redis.exists(target.prefix)
    assert redis.zrange(current_prefix(redis, target.prefix), 0, -1) == [b"new", b"newer"]
