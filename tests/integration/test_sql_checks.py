"""Queries that no flow can have are refused when they are planned, with their place and what to write."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import md5

import pytest
from pyspark.sql import functions as F

from penstock.errors import FlowError
from penstock.events import Event
from penstock.log import Table, Topic
from penstock.pipeline import Pipeline
from penstock.process.columns.names import FINAL, SOURCE_TYPE
from penstock.process.time.horizon import up_to
from penstock.process.wire.messages import with_id
from penstock.testing import Feed

START = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = f"id string, url string, user string, n int, at timestamp, _source struct<{SOURCE_TYPE}>"
MINUTE = "FROM views GROUP BY url, window(at, '1 minute')"
NEAR = "b.at BETWEEN a.at - INTERVAL 1 MINUTE AND a.at"


@dataclass(frozen=True)
class View(Event):
    url: str
    user: str
    n: int
    at: datetime


views, clicks, results = Topic("views", View), Topic("clicks", View), Topic("results", View)
rules = Table("rules", View, key="url")
MARKS = {"views": "10 seconds", "clicks": "10 seconds"}


def at(seconds):
    return START + timedelta(seconds=seconds)


def query(text, *more, watermark=True, changing=(), **options):
    """The function of a flow that reads views and, where the query names them, clicks, and looks up rules."""
    topics = {"views": views, "clicks": clicks, "rules": rules}
    named = [name for name in topics if name in text or name in more]
    reads = {name: topics[name] for name in named if name != "rules" or "rules" in changing}
    marks = {name: mark for name, mark in MARKS.items() if name in reads} if watermark else {}
    looks_up = {name: topics[name] for name in named if name not in reads}
    return Pipeline("shop").sql(
        "counted", text, reads=reads, looks_up=looks_up, writes=results, watermark=marks, **options
    )


def planned(spark, text, *more, rows=(), **options):
    """The query over tables of these rows."""
    function = query(text, *more, **options)
    frame = spark.createDataFrame(list(rows), TYPES)
    return function(**dict.fromkeys((*function.reads, *function.looks_up), frame))


REFUSED = [
    ("SELECT uri FROM views", r"line 1, column 8: there is no column 'uri'; did you mean url"),
    ("SELECT url FORM views", r"line 1, column 17: it can't be parsed at 'views'"),
    ("SELECT url,\n  nope(url) FROM views", r"line 2, column 3: there is no function 'nope'"),
    ("SELECT url\nFROM view", r"line 2, column 6: there is no table 'view'.* did you mean views"),
    ("SELECT url FROM default.views", r"there is no table 'default.views'"),
    ("SELECT * FROM parquet.`/etc`", r"there is no table 'parquet./etc'"),
    ("SELECT url FROM views WHERE url IN (SELECT x FROM csv.`/etc/passwd`)", "there is no table 'csv"),
    ("SELECT url FROM (WITH t AS (SELECT url FROM views) SELECT * FROM t) JOIN t USING (url)", "`t`"),
    ("DROP TABLE views", "DropTable is no part of a flow's query"),
    ("INSERT INTO x SELECT * FROM views", "InsertIntoStatement is no part"),
    ("CREATE TABLE x AS SELECT * FROM views", "CreateTableAsSelect is no part"),
    ("SET spark.sql.ansi.enabled = false", "Unsupported SQL statement"),
    ("SELECT TRANSFORM(url) USING 'cat' AS (x) FROM views", "ScriptTransformation is no part"),
    ("SELECT url FROM views ORDER BY url", "line 1, column 23: ORDER BY has no meaning in a stream"),
    ("SELECT url FROM views LIMIT 3", "LIMIT and OFFSET have no meaning"),
    ("SELECT DISTINCT url FROM views", "DISTINCT would keep every row"),
    ("SELECT url FROM views UNION SELECT user FROM views", "UNION would keep.*; write UNION ALL"),
    ("SELECT url FROM views EXCEPT SELECT user FROM views", "EXCEPT needs the whole"),
    ("SELECT url FROM views TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("SELECT url, row_number() OVER (PARTITION BY url ORDER BY at) AS r FROM views", "OVER .* is over"),
    ("SELECT url FROM views WATERMARK at DELAY OF INTERVAL 10 SECONDS", r"Spark's own.*say watermark="),
    ("SELECT url FROM STREAM views", "leave STREAM out"),
    ("SELECT url FROM views NATURAL JOIN rules", "a NATURAL join"),
    ("SELECT url, current_timestamp() AS t FROM views", r"column 13: current_timestamp\(\) may be another"),
    ("SELECT url FROM views WHERE at < now()", r"now\(\) may be another value each time"),
    ("SELECT url, current_date FROM views", r"current_date\(\) may be"),
    ("SELECT url, TIMESTAMP 'now' AS t FROM views", "a word for the present"),
    ("SELECT url FROM views WHERE at > 'yesterday'", "a word for the present"),
    ("SELECT url, rand() AS r FROM views", r"rand\(\) may be"),
    ("SELECT url, uuid() AS r FROM views", r"uuid\(\) may be"),
    ("SELECT url, reflect('java.lang.System', 'nanoTime') AS r FROM views", r"reflect\(\) may be"),
    ("SELECT views.url FROM views JOIN (VALUES ('/', rand())) t(url, n) USING (url)", "VALUES computes"),
    (f"SELECT url, collect_list(user) AS users {MINUTE}", r"collect_list\(\) may be.*sort_array"),
    (f"SELECT url, first(user) AS user {MINUTE}", r"first\(\) may be.*min_by"),
    (f"SELECT url, listagg(user) AS users {MINUTE}", r"listagg\(\) may be.*WITHIN GROUP"),
    (f"SELECT url, count(DISTINCT user) AS users {MINUTE}", "DISTINCT values.*approx_count_distinct"),
    (f"SELECT url, max_by(struct(*), at) AS last {MINUTE}", r"\* would keep every column in state"),
    ("SELECT url, count(*) AS n FROM views GROUP BY url", "never final.*output=\"update\""),
    ("SELECT url, max(n) AS n FROM views GROUP BY url, window(at + INTERVAL 1 HOUR, '1 hour')", "watermark"),
    ("SELECT a.url FROM views a JOIN clicks b ON a.url = b.url", "without a limit in time.*BETWEEN"),
    (f"SELECT a.* FROM views a JOIN clicks b ON a.url = b.url AND {NEAR}", r"\* would keep every column"),
    (f"SELECT a.url FROM views a FULL JOIN clicks b ON a.url = b.url AND {NEAR}", "FullOuter join of two"),
    ("SELECT r.url FROM rules r LEFT JOIN views v ON r.url = v.url", "let the stream be the outer side"),
    ("SELECT url FROM views WHERE url IN (SELECT url FROM clicks)", "not allowed in subquery"),
    ("SELECT 1 AS one FROM rules", "it has no use for 'views'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[each[0] for each in REFUSED])
def test_what_no_flow_can_have_is_refused(spark, text, message):
    with pytest.raises(FlowError, match=f"(?s)the query of flow 'counted'.*{message}"):
        planned(spark, text, "views")


def test_a_window_needs_a_watermark(spark):
    with pytest.raises(FlowError, match=r"a window of a time without a watermark.*watermark="):
        planned(spark, f"SELECT url, count(*) AS n {MINUTE}", watermark=False, output="update")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT url, count(*) AS n FROM rules GROUP BY url",
        "SELECT v.url FROM views v JOIN rules r ON r.url = v.url",
    ],
)
def test_changes_of_a_table_are_neither_counted_nor_joined(spark, text):
    with pytest.raises(FlowError, match=r"'rules' is a table.* its changes, not its rows.*looks_up"):
        planned(spark, text, changing=("rules",), output="update")


ALLOWED = [
    (f"SELECT url, sort_array(collect_list(user)) AS users {MINUTE}", ["url", "users"]),
    (f"SELECT url, size(collect_set(user)) AS users {MINUTE}", ["url", "users"]),
    (f"SELECT url, listagg(user, ',') WITHIN GROUP (ORDER BY user) AS users {MINUTE}", ["url", "users"]),
    ("SELECT user, count(*) AS n FROM views GROUP BY user, session_window(at, '1 minute')", ["user", "n"]),
    ("WITH a AS (SELECT url, at FROM views) SELECT url FROM a WHERE at > '2026-01-01'", ["url", "_source"]),
    ("SELECT a.url, b.n FROM views a JOIN views b ON a.url = b.url AND " + NEAR, ["url", "n", "_source"]),
    ("SELECT url, x FROM views LATERAL VIEW explode(split(url, '/')) t AS x", ["url", "x", "_source"]),
    ("SELECT url FROM views WHERE user = 'now' UNION ALL SELECT user FROM clicks", ["url", "_source"]),
    ("SELECT url FROM views WHERE url NOT IN (SELECT url FROM rules)", ["url", "_source"]),
    ("SELECT url, x FROM views JOIN (VALUES ('/', 1)) t(url, x) USING (url)", ["url", "x", "_source"]),
    ("SELECT url, '${env:HOME}' AS home FROM VIEWS", ["url", "home", "_source"]),
    ("SELECT * FROM views", ["id", "url", "user", "n", "at", "_source"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "columns"), ALLOWED, ids=[each[0] for each in ALLOWED])
def test_what_a_query_may_have(spark, text, columns):
    assert planned(spark, text, "views").columns == columns


def test_settings_do_not_come_into_a_query(spark):
    row = ("1", "/", "ann", 1, START, None)
    text = "SELECT '${env:HOME}' AS home, '${spark.tests.password}' AS secret FROM views"
    found = planned(spark, text, rows=[row]).first()
    assert (found.home, found.secret) == ("${env:HOME}", "${spark.tests.password}")


def test_a_query_leaves_nothing_behind_in_the_session(spark):
    before = [each.name for each in spark.catalog.listTables()]
    planned(spark, "SELECT url FROM views")
    assert [each.name for each in spark.catalog.listTables()] == before


def test_a_view_of_the_session_is_not_what_a_flow_reads(spark):
    spark.range(1).createOrReplaceTempView("views")
    spark.range(1).createOrReplaceTempView("others")
    try:
        assert planned(spark, "SELECT url FROM views").columns == ["url", "_source"]
        with pytest.raises(FlowError, match="there is no table 'others'"):
            planned(spark, "SELECT id FROM others", "views")
    finally:
        spark.catalog.dropTempView("views")
        spark.catalog.dropTempView("others")


def test_a_row_says_which_event_it_is_of(spark):
    def row(offset):
        return (str(offset), "/", "ann", 1, START, ("views", 0, offset, START, None))

    found = planned(spark, "SELECT url, n FROM views WHERE n = 1", rows=[row(3), row(4)])
    assert sorted(each["_source"].offset for each in found.collect()) == [3, 4]


PAIRS = "FROM views a JOIN clicks b ON a.url = b.url AND " + NEAR
JOINS = [
    (f"SELECT a.url {PAIRS}", 4),
    (f"SELECT a._source, a.url {PAIRS}", 4),
    (f"SELECT b._source, a.url {PAIRS}", 4),
    (f"SELECT a._source AS _source, a.url {PAIRS}", 4),
    (f"SELECT url FROM (SELECT a.url, b._source {PAIRS}) WHERE url = '/'", 4),
    (f"WITH pairs AS (SELECT a.url, a.at {PAIRS}) SELECT url FROM pairs WHERE at IS NOT NULL", 4),
    (f"SELECT a.url, x {PAIRS} LATERAL VIEW explode(array(1, 2)) t AS x", 8),
    (f"SELECT a.url {PAIRS}".replace("JOIN", "LEFT JOIN"), 5),
    (f"SELECT b.url {PAIRS}".replace("JOIN", "RIGHT JOIN"), 4),
    (f"SELECT a.url {PAIRS}".replace("JOIN", "LEFT SEMI JOIN"), 2),
    (f"SELECT a.url {PAIRS} JOIN clicks c ON c.url = a.url AND {NEAR.replace('b.', 'c.')}", 8),
    (f"SELECT a.url {PAIRS} UNION ALL SELECT url FROM views", 7),
    (f"SELECT a.url, a._source {PAIRS} UNION ALL SELECT url, _source FROM clicks", 6),
    (f"SELECT a.url {PAIRS} JOIN rules r ON r.url = a.url", 4),
]  # fmt: skip


def event(topic, offset, url="/"):
    return (f"{topic}{offset}", url, "ann", 1, START, (topic, 0, offset, START, None))


@pytest.mark.parametrize(("text", "pairs"), JOINS, ids=[each[0] for each in JOINS])
def test_each_pair_of_a_join_has_an_id_of_its_own(spark, text, pairs):
    """All events are alike, and so are the rows: only their places differ."""
    function = query(text)
    rows = {
        "views": [event("views", 0), event("views", 1), event("views", 2, "/alone")],
        "clicks": [event("clicks", 0), event("clicks", 1)],
        "rules": [event("rules", 0)],
    }
    frames = {
        name: spark.createDataFrame(rows[name], TYPES) for name in (*function.reads, *function.looks_up)
    }
    if "rules" in frames:
        frames["rules"] = frames["rules"].drop("_source")
    ids = [row.id for row in with_id(function(**frames), "pairs").collect()]
    assert len(ids) == len({*ids}) == pairs
    assert {*ids} == {row.id for row in with_id(function(**frames), "pairs").repartition(3).collect()}


def test_the_ids_of_a_query_without_a_join_of_streams_are_what_they_were(spark):
    known = md5(b'{"flow":"placed","topic":"views","partition":0,"offset":7,"row":{"url":"/"}}').hexdigest()
    texts = ("SELECT url FROM views", "SELECT v.url FROM views v JOIN rules r ON v.url = r.url")
    for text in texts:
        function = query(text)
        views = spark.createDataFrame([event("views", 7)], TYPES)
        rules = {"rules": spark.createDataFrame([("/",)], "url string")} if "rules" in text else {}
        found = function(views=views, **rules)
        assert found.schema["_source"].dataType == views.schema["_source"].dataType
        assert with_id(found, "placed").first().id == known


def test_pairs_of_a_stream_name_both_of_their_events(spark):
    function = query(f"SELECT a.url {PAIRS}")
    with Feed(spark, function, views=views, clicks=clicks) as feed:
        alike = [View("/", "ann", 1, at(5))] * 2
        found = feed.send(views=alike[:1], clicks=alike)
        later = feed.send(views=alike[:1])
    places = [
        (row["_source"].offset, [each.offset for each in row["_source"].joined]) for row in found + later
    ]
    assert sorted(places) == [(0, [0]), (0, [1]), (1, [0]), (1, [1])]


@pytest.mark.parametrize(
    ("window", "select", "waiting"),
    [
        ("window(at, '1 minute')", "url, window.start AS start", 2),
        ("window(at, '2 minutes', '1 minute')", "url", 4),
        ("session_window(at, '30 seconds')", "url, session_window", 2),
        ("at", "url, at", 1),
    ],
)
def test_a_replay_that_is_verified_leaves_out_windows_that_are_not_over(spark, window, select, waiting):
    rows = [("1", url, "ann", 1, at(seconds), None) for url, seconds in (("/", 5), ("/", 62), ("/x", 90))]
    text = f"SELECT {select}, count(*) AS n FROM views GROUP BY url, {window}"
    everything = planned(spark, text, rows=rows)
    with up_to(at(70)) as horizon:
        found = planned(spark, text, rows=rows)
    assert found.columns == everything.columns
    assert found.count() + waiting == everything.count()
    assert {row.url for row in found.collect()} == {"/"}
    assert horizon.waiting(lambda _: None) == waiting


def test_results_of_windows_are_written_in_their_order(spark):
    inner = f"SELECT url, window.end AS end, count(*) AS n {MINUTE}"
    for text in (inner, f"SELECT url, end FROM ({inner}) WHERE n > 1"):
        assert planned(spark, text).schema["end"].metadata[FINAL] is True
    assert planned(spark, inner, output="update").schema["end"].metadata[FINAL] is False
    other = planned(spark, f"SELECT url, max(at) AS end {MINUTE}")
    assert FINAL not in other.schema["end"].metadata


def test_windows_follow_the_watermark_of_the_flow_and_late_events_are_counted(spark):
    """The watermark waits for both partitions: that one of them is ahead makes no event of the other late."""
    function = query(f"SELECT url, window.end AS end, count(*) AS n {MINUTE}")
    with Feed(spark, function, views=views) as feed:
        feed.send(views=[View("/", "ann", 1, at(5)), View("/", "bob", 1, at(50))])
        (first,) = feed.send(views=[View("/", "ann", 1, at(8)), View("/", "eve", 1, at(71))])
        assert (first.url, first.n, first.end) == ("/", 3, at(60).replace(tzinfo=None))
        assert feed.send(views=[View("/", "late", 1, at(8))]) == []
        operators = [each for progress in feed._query.recentProgress for each in progress["stateOperators"]]
        assert sum(each["numRowsDroppedByWatermark"] for each in operators) == 1


def test_a_filter_does_not_hold_the_watermark_back(spark):
    """Neither ticks nor the times of events that a query has no use for are filtered out before it."""
    where = "WHERE user = 'ann' AND n > 0 AND at IS NOT NULL"
    function = query(f"SELECT url, count(*) AS n FROM views {where} GROUP BY url, window(at, '1 minute')")
    with Feed(spark, function, views=views) as feed:
        feed.send(views=[View("/", "ann", 1, at(5))])
        (found,) = feed.send(views=[View("/", "bob", 1, at(75))])
        assert (found.url, found.n) == ("/", 1)


def test_a_query_can_be_a_file(spark, tmp_path):
    path = tmp_path / "views.sql"
    path.write_text("SELECT url\nFROM views\nWHERE us = 'ann'")
    function = Pipeline("shop").sql("counted", path, reads={"views": views}, writes=results)
    with pytest.raises(FlowError, match="line 3, column 7: there is no column 'us'; did you mean user"):
        function(views=spark.createDataFrame([], TYPES).select("*", F.lit(1).alias("more")))
