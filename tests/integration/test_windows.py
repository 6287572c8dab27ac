"""Windows on Spark against the reference: as a stream, batch by batch, and in replay."""

import re
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from random import Random

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from tests.reference import windows as reference

from penstock.errors import DataError, FlowError
from penstock.process import dedup, ranking, windows
from penstock.process.windows import Late, Watermark, agg
from penstock.testing import Feed

START = datetime(2026, 2, 28, 23, 59, tzinfo=UTC)  # across midnight and the end of a month
SECOND = 1_000_000
SCHEMA = "key string, at timestamp, number long, amount decimal(12,2)"
DELAY = 5


def at(seconds):
    return START + timedelta(seconds=seconds)


def seconds(time):
    return (time.replace(tzinfo=UTC) - START) / timedelta(seconds=1)


def batches(seed, keys=60, count=5):
    """Batches of rows: disorder, equal times, late ones, a null key, and a fraction of a second."""
    random, names, number, clock = Random(seed), [None, *(f"k{n}" for n in range(1, keys))], 0, 0
    for _ in range(count):
        clock += random.choice((3, 10, 25))
        rows = []
        for _ in range(3 * keys):
            time = clock - random.choice((0, 0, 1, 0.5, random.randrange(12), random.randrange(70)))
            rows.append((random.choice(names), time, number))
            number += 1
        yield rows


def spark_rows(rows):
    return [(key, at(time), number, Decimal(number) / 4) for key, time, number in rows]


def watermarks(given):
    """The watermark that each batch meets, and the one after the last; Spark counts in milliseconds."""
    latest, found = None, []
    for rows in given:
        found.append(-(10**9) if latest is None else latest - DELAY)
        latest = max([time for _, time, _ in rows] + ([latest] if latest is not None else []))
    return found, latest - DELAY


def expected(make, given):
    """Results and late rows by the reference: a batch, then a step at the watermark that it has moved."""
    ones, results, late = defaultdict(make), [], []
    _, last = watermarks(given)
    moments = [*watermarks(given)[0][1:], last]
    for rows, before, after in zip(given, watermarks(given)[0], moments, strict=True):
        by_key = defaultdict(list)
        for key, time, number in rows:
            by_key[key].append((int(time * SECOND), number))
        for now, taken in ((before, by_key), (after, {})):
            for key in {*by_key, *ones}:
                emitted, missed = ones[key].step(taken.get(key, []), int(now * SECOND))
                results += [(key, s, e, kind, sorted(n for _, n in held)) for s, e, kind, held in emitted]
                late += [number for _, number in missed]
    return sorted(results, key=str), sorted(late)


def found(rows):
    emitted = [
        (
            row.key,
            round(seconds(row.start) * SECOND),
            round(seconds(row.end) * SECOND),
            row.kind,
            sorted(row.numbers),
        )
        for row in rows
        if row.kind is not None
    ]
    return sorted(emitted, key=str)


SHAPES = {
    "tumbling": (
        lambda **o: windows.tumbling("10 seconds", **o),
        lambda w: reference.Fixed(10 * SECOND, 10 * SECOND, w),
    ),
    "hopping": (
        lambda **o: windows.hopping("12 seconds", every="5 seconds", **o),
        lambda w: reference.Fixed(12 * SECOND, 5 * SECOND, w),
    ),
    "session": (lambda **o: windows.session("4 seconds", **o), lambda w: reference.Sessions(4 * SECOND, w)),
    "sliding": (lambda **o: windows.sliding("8 seconds", **o), lambda w: reference.Sliding(8 * SECOND, w)),
}  # fmt: skip
NATIVE = ("tumbling", "hopping", "session")


@pytest.mark.parametrize("shape", SHAPES)
def test_windows_with_a_late_policy_are_those_of_the_reference(shape, spark):
    make, plain = SHAPES[shape]
    windowing = make(
        time="at", by="key", watermark=f"{DELAY} seconds", late=Late.refire(within="20 seconds").then("late"),
        buckets=3,
    )  # fmt: skip
    given = list(batches(7))
    with Feed(
        spark, lambda rows: rows.transform(windowing.agg(numbers=agg.collect("number"))), rows=SCHEMA
    ) as feed:
        for rows in given:
            feed.send(rows=spark_rows(rows))
        results = feed.results
    wanted, late = expected(lambda: plain(20 * SECOND), given)
    assert found(results) == wanted
    assert sorted(row.number for row in results if row._side_output == "late") == late
    assert late
    assert {kind for _, _, _, kind, _ in wanted} >= {"on time", "corrected"}


def test_a_sliding_window_has_the_columns_of_its_event(spark):
    """As a stream that comes late in parts, and in replay: each event once, with what was before it."""
    windowing = windows.sliding("8 seconds", time="at", by="key", watermark=f"{DELAY} seconds", buckets=3)
    counted = windowing.agg(n=agg.count(), total=agg.sum("amount"), numbers=agg.collect("number"))
    events = [("a", 0, 1), ("b", 1, 2), ("a", 7, 3), ("a", 7, 4), ("a", 8, 5), ("a", 20, 6)]
    with Feed(spark, lambda rows: rows.transform(counted), rows=SCHEMA) as feed:
        feed.send(rows=spark_rows([events[2], events[0], events[5]]))
        feed.send(rows=spark_rows([events[1], events[3], events[4]]))  # all of them too late
        streamed = feed.results
    assert [(row.number, row.n, seconds(row.at)) for row in streamed] == [(1, 1, 0), (3, 2, 7)]
    rows = spark.createDataFrame(spark_rows(events), SCHEMA).transform(counted).collect()
    emitted = {row.number: (row.kind, row.n, row.rows, row.total * 4, seconds(row.at)) for row in rows}
    assert emitted == {
        1: ("on time", 1, 1, 1, 0),
        2: ("on time", 1, 1, 2, 1),
        3: ("on time", 3, 3, 8, 7),
        4: ("on time", 3, 3, 8, 7),
        5: ("on time", 3, 3, 12, 8),
        6: ("on time", 1, 1, 6, 20),
    }
    with pytest.raises(FlowError, match="no window for each event"):
        windowing.agg(F.count("*"))
    with pytest.raises(FlowError, match="have a column number"):
        spark.createDataFrame([], SCHEMA).transform(windowing.agg(number=agg.count()))


@pytest.mark.parametrize("shape", NATIVE)
def test_native_windows_and_a_replay_are_those_of_the_reference(shape, spark):
    make, plain = SHAPES[shape]
    windowing = make(time="at", by="key", watermark=f"{DELAY} seconds", buckets=3)
    given = list(batches(8))
    if shape == "session":  # Spark drops a late event even if it belongs to a session that is open
        limits, _ = watermarks(given)
        given = [[row for row in rows if row[1] > limit] for rows, limit in zip(given, limits, strict=True)]
    native = windowing.agg(F.collect_list("number").alias("numbers"))
    with Feed(spark, lambda rows: rows.transform(native), rows=SCHEMA) as feed:
        for rows in given:
            feed.send(rows=spark_rows(rows))
        streamed = found(feed.results)
    wanted, _ = expected(lambda: plain(0), given)
    assert streamed == wanted
    table = spark.createDataFrame(spark_rows([row for rows in given for row in rows]), SCHEMA)
    everything = [[row for rows in given for row in rows], [("end", 10**6, -1)]]
    whole = [each for each in expected(lambda: plain(0), everything)[0] if each[0] != "end"]
    assert found(table.transform(native).collect()) == whole
    declared = windowing.agg(numbers=agg.collect("number"))
    assert found(table.transform(declared).collect()) == whole


def test_every_row_is_counted_sent_or_dropped(spark):
    """Rows in = rows in the last results + rows sent to the side output."""
    windowing = windows.tumbling(
        "10 seconds",
        time="at",
        by="key",
        watermark="5 seconds",
        late=Late.refire(within="10 seconds").then("late"),
    )
    given = list(batches(9))
    with Feed(
        spark, lambda rows: rows.transform(windowing.agg(total=agg.sum("amount"))), rows=SCHEMA
    ) as feed:
        for rows in given:
            feed.send(rows=spark_rows(rows))
        feed.advance(at(10_000))
        results = feed.results
    latest = {(row.key, row.start): row for row in results if row.kind is not None}
    sent = [row for row in results if row._side_output is not None]
    assert sum(row.rows for row in latest.values()) + len(sent) == sum(len(rows) for rows in given)
    total = sum((row.total for row in latest.values()), Decimal(0)) + sum(
        (row.amount for row in sent), Decimal(0)
    )
    assert total == sum((Decimal(n) / 4 for rows in given for _, _, n in rows), Decimal(0))


def test_every_declared_aggregate(spark):
    windowing = windows.tumbling("1 day", time="at", by="key", watermark="1 second")
    all_of_them = windowing.agg(
        n=agg.count(), known=agg.count("number"), sum=agg.sum("number"), spent=agg.sum("amount"),
        mean=agg.avg("amount"), least=agg.min("at"), most=agg.max("key"), different=agg.distinct("number"),
        about=agg.distinct("number", exact=False), first=agg.first("number"), last=agg.last("amount"),
        median=agg.percentile("number", 0.5), top=agg.top("number", 2), all=agg.collect("amount"),
    )  # fmt: skip
    rows = [
        ("a", at(3), 5, Decimal("1.25")),
        ("a", at(1), 2**62, None),
        ("a", at(2), None, Decimal("-3.50")),
        ("a", at(2), 5, Decimal("0.25")),
    ]
    (row,) = spark.createDataFrame(rows, SCHEMA).transform(all_of_them).collect()
    assert (row.n, row.known, row.sum, row.spent, row.mean) == (
        4,
        3,
        2**62 + 10,
        Decimal("-2.00"),
        pytest.approx(-2 / 3),
    )
    assert (row.least.replace(tzinfo=UTC), row.most, row.different, row.about) == (at(1), "a", 2, 2)
    assert (row.first, row.last, row.median, row.top) == (2**62, Decimal("1.25"), 5.0, [2**62, 5])
    assert sorted(row.all, key=str) == sorted(
        [None, Decimal("-3.50"), Decimal("0.25"), Decimal("1.25")], key=str
    )


def test_events_dated_ahead_do_not_move_the_watermark(spark):
    windowing = windows.tumbling(
        "10 seconds", time="at", by="key", late=Late.send("late"),
        watermark=Watermark("5 seconds", future="1 minute", arrived="written"),
    )  # fmt: skip
    schema = "key string, at timestamp, written timestamp"
    with Feed(spark, lambda rows: rows.transform(windowing.agg(n=agg.count())), rows=schema) as feed:
        feed.send(rows=[("a", at(1), at(1)), ("a", at(1000), at(2)), ("a", None, at(2))])
        out = feed.send(rows=[("a", at(2), at(2)), ("a", at(20), at(20))])
    results = [(row.n, row.kind) for row in feed.results if row._side_output is None]
    assert results == [(2, "on time")]
    assert [row.at and row.at.replace(tzinfo=UTC) for row in feed.results if row._side_output] == [
        at(1000),
        None,
    ]
    assert out


def test_a_watermark_over_sources_waits_for_the_last_of_them(spark):
    windowing = windows.tumbling(
        "10 seconds", time="at", by="key", watermark=Watermark("1 second", sources=("key", ["a", "b"]))
    )
    with Feed(
        spark,
        lambda rows: rows.transform(windowing.agg(n=agg.count())),
        rows="key string, at timestamp",
    ) as feed:
        assert feed.send(rows=[("a", at(1)), ("a", at(100))]) == []
        assert feed.send(rows=[("b", at(5))]) == []
        emitted = feed.send(rows=[("b", at(12))])
        assert {(row.key, row.n) for row in emitted} == {("a", 1), ("b", 1)}


def test_what_can_not_be_is_refused(spark):
    plain = {"time": "at", "by": "key", "watermark": "5 seconds"}
    with pytest.raises(FlowError, match="leave gaps"):
        windows.hopping("10 seconds", every="20 seconds", **plain)
    with pytest.raises(FlowError, match="can't be corrected"):
        windows.tumbling("1 minute", late=Late.refire(within="1 minute"), **plain).agg(F.count("*"))
    with pytest.raises(FlowError, match="early"):
        windows.tumbling("1 minute", emit="early", late=Late.drop(), **plain)
    with pytest.raises(FlowError, match="either"):
        windows.tumbling("1 minute", **plain).agg()
    with pytest.raises(FlowError, match="'rows' is a column"):
        windows.tumbling("1 minute", **plain).agg(rows=agg.count())


def test_the_greatest_of_all_time_as_a_stream_and_in_replay(spark):
    """What is emitted of each place last is the ranking; a batch emits it once."""
    best = ranking.top(3, "total", by="key", total=agg.sum("amount"), latest=agg.last("number"))
    given = list(batches(4, keys=8, count=4))
    with Feed(spark, lambda rows: rows.transform(best), rows=SCHEMA) as feed:
        for rows in given:
            feed.send(rows=spark_rows(rows))
        emitted = {row.place: (row.key, row.rank, row.total) for row in feed.results}
        assert feed.send(rows=[]) == []
    totals = defaultdict(Decimal)
    for key, _, number in (row for rows in given for row in rows):
        totals[key] += Decimal(number) / 4
    wanted = sorted(totals, key=lambda key: totals[key], reverse=True)[:3]
    assert emitted == {place: (key, place, totals[key]) for place, key in enumerate(wanted, 1)}
    table = spark.createDataFrame(spark_rows([row for rows in given for row in rows]), SCHEMA)
    assert {row.place: (row.key, row.rank, row.total) for row in table.transform(best).collect()} == emitted


PLAIN = {"time": "at", "watermark": "5 seconds"}
LATE = {**PLAIN, "late": Late.send("late")}
CLASHING = (
    "key string, at timestamp, text string, kind string, start long, rows long, rank long, "
    "_side_output string, user struct<id:string>, tags map<string,string>"
)
REFUSED = {
    "the key 'kind' is a column of every result": lambda: windows.tumbling("1 s", by="kind", **PLAIN),
    "the key 'start' is a column of every": lambda: windows.session("1 s", by=("key", "start"), **PLAIN),
    "the key 'rows' is a column": lambda: windows.tumbling("1 s", by="rows", **PLAIN).agg(n=agg.count()),
    "the aggregate 'end' is a": lambda: windows.tumbling("1 s", **PLAIN).agg(F.max("at").alias("end")),
    "the aggregate 'key' is a": lambda: windows.tumbling("1 s", by="key", **PLAIN).agg(
        F.max("at").alias("key")
    ),
    "two aggregates are called 'n'": lambda: windows.tumbling("1 s", **PLAIN).agg(
        F.count("*").alias("n"), F.max("start").alias("n")
    ),
    "the key 'rank' is a": lambda: windows.tumbling("1 s", by="rank", **PLAIN).top(
        1, "n", F.count("*").alias("n")
    ),
    "a ranking by 'm', which": lambda: windows.tumbling("1 s", by="key", **PLAIN).top(
        1, "m", F.count("*").alias("n")
    ),
    "the key '_side_output' is a": lambda: windows.tumbling(
        "1 s", by="_side_output", **LATE
    ).agg(n=agg.count()),
    "events have a column _side_output, kind": lambda: windows.tumbling("1 s", **LATE).agg(n=agg.count()),
    "events have a column kind, rows, start": lambda: windows.sliding("1 s", **PLAIN).agg(n=agg.count()),
    "the key '_us' has a name of Penstock's own": lambda: windows.tumbling("1 s", by="_us", **PLAIN),
    "names a column twice": lambda: windows.tumbling("1 s", by=("key", "key"), **PLAIN),
    "in 0 buckets": lambda: windows.tumbling("1 s", buckets=0, **PLAIN),
    "the time 'text' is string, expected a timestamp": lambda: windows.tumbling(
        "1 s", time="text", watermark="1 s"
    ).agg(n=agg.count()),
    "the stream has no column 'when'": lambda: windows.tumbling("1 s", time="when", watermark="1 s").agg(
        n=agg.count()
    ),
    "the key 'user.id' is no column, but a field of one": lambda: windows.tumbling(
        "1 s", by="user.id", **PLAIN
    ).agg(n=agg.count()),
    "the key 'tags' is map": lambda: windows.tumbling("1 s", by="tags", **PLAIN).agg(n=agg.count()),
    "max of 'user', which is struct<id:string>": lambda: windows.tumbling("1 s", **PLAIN).agg(
        n=agg.max("user")
    ),
    "dedup.first has no key": lambda: dedup.first((), **PLAIN),
    "0 buckets": lambda: dedup.first("key", buckets=0, **PLAIN),
    "'text' is string": lambda: dedup.first("key", time="text", watermark="1 s"),
    "events have a column '_side_output'": lambda: dedup.first("key", **LATE),
    "has no column 'card'": lambda: dedup.first("card", **PLAIN),
    "the key 'rank' is": lambda: ranking.top(1, "n", by="rank", n=agg.count()),
    "ranking.top has no key": lambda: ranking.top(1, "n", by=(), n=agg.count()),
}  # fmt: skip


def test_what_does_not_fit_the_events_is_refused_when_it_is_planned(spark):
    """Each refusal names the column; nothing is run."""
    rows = spark.createDataFrame([], CLASHING)
    for message, make in REFUSED.items():
        with pytest.raises(FlowError, match=re.escape(message)):
            rows.transform(make())
    odd = spark.createDataFrame([], "_time long, at timestamp")
    with pytest.raises(FlowError, match="events have a column '_time'"):
        odd.transform(windows.tumbling("1 s", **PLAIN).agg(n=agg.count()))


DOTTED = [("a", at(1), 1.0), ("a", at(2), float("nan")), ("b", at(3), 2.0), ("a", at(30), 5.0)]
TUMBLED = ["a 5.0", "a nan", "b 2.0"]


def dotted(rows, *engines):
    """Results of engines over columns that have a dot in their names."""
    plain = {"time": "the.time", "by": "the.key", "watermark": "0 seconds", "buckets": 1}
    most = {"the.most": agg.max("a.b")}
    found = {
        "late": windows.tumbling("10 seconds", late=Late.send("late"), **plain).agg(**most),
        "native": windows.tumbling("10 seconds", **plain).agg(F.max("`a.b`").alias("the.most")),
        "sliding": windows.sliding("10 seconds", **plain).agg(**most),
        "first": dedup.first(within="1 day", **plain),
    }
    value = {"first": "`a.b`"}
    emitted = [
        rows.transform(each).select(F.lit(name), F.concat_ws(" ", "`the.key`", value.get(name, "`the.most`")))
        for name, each in found.items()
        if name in engines
    ]
    return reduce(DataFrame.union, emitted)


def test_names_may_have_a_dot_and_not_a_number_is_the_greatest(spark):
    schema = "`the.key` string, `the.time` timestamp, `a.b` double"
    with Feed(spark, lambda rows: dotted(rows, "late", "native"), rows=schema) as feed:
        feed.send(rows=DOTTED)
        feed.advance(at(100))
    replayed = dotted(spark.createDataFrame(DOTTED, schema), "sliding", "first").collect()
    emitted = defaultdict(list)
    for name, value in [*feed.results, *replayed]:
        emitted[name].append(value.replace("NaN", "nan"))
    assert {name: sorted(values) for name, values in emitted.items()} == {
        "late": TUMBLED,
        "native": TUMBLED,
        "sliding": ["a 1.0", *TUMBLED],
        "first": ["a 1.0", "b 2.0"],
    }


EARLY = datetime(1969, 12, 31, 23, 30, tzinfo=UTC)


def test_events_before_1970_are_late_in_a_stream(spark):
    """Spark's watermark begins there: a late policy has a place for them, Spark's own windows refuse them."""
    rows = [("a", EARLY, 1), ("a", at(1), 2)]
    schema = "key string, at timestamp, n long"
    hours = windows.tumbling("1 hour", by="key", buckets=1, **LATE)
    counted, natively = (
        hours.agg(seen=agg.count()),
        windows.tumbling("1 hour", **PLAIN).agg(F.count("*").alias("n")),
    )
    with Feed(spark, lambda rows: rows.transform(counted), rows=schema) as feed:
        feed.send(rows=rows)
        feed.advance(at(10_000))
    assert [(row.kind, row._side_output, row.n) for row in feed.results] == [
        (None, "late", 1),
        ("on time", None, None),
    ]
    table = spark.createDataFrame(rows, schema)
    assert [row.kind for row in table.transform(counted).collect()] == ["on time", "on time"]
    assert table.transform(natively).count() == 2
    with (
        Feed(spark, lambda rows: rows.transform(natively), rows=schema) as feed,
        pytest.raises(DataError, match=r"dated 1969-12-31 23:30:00, and a stream's .* count them as late$"),
    ):
        feed.send(rows=rows)
