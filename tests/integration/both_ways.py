"""Flows that are written both ways, in SQL and in Python, for the tests that compare them."""

from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Table, Topic
from penstock.pipeline import Pipeline
from penstock.process import joins, windows


@dataclass(frozen=True)
class View(Event):
    page: str
    user: str
    seconds: int
    at: datetime


@dataclass(frozen=True)
class Click(Event):
    page: str
    ad: str
    at: datetime


@dataclass(frozen=True)
class Page(Event):
    page: str
    section: str
    at: datetime


@dataclass(frozen=True)
class Minute(Event, time="end"):
    page: str
    end: datetime
    views: int
    longest: int


@dataclass(frozen=True)
class Visit(Event, time="end"):
    user: str
    end: datetime
    views: int


@dataclass(frozen=True)
class Pair(Event):
    page: str
    user: str
    ad: str | None
    at: datetime


@dataclass(frozen=True)
class Placed(Event):
    page: str
    section: str
    at: datetime


views = Topic("both.views", View, key="page", partitions=2)
clicks = Topic("both.clicks", Click, key="page", partitions=2)
pages = Table("both.pages", Page, key="page")

MINUTES = """
    SELECT page, window.end AS end, count(*) AS views, max(seconds) AS longest
    FROM views
    WHERE user <> 'robot'
    GROUP BY page, window(at, '1 minute')
"""
VISITS = """
    SELECT user, session_window.end AS end, count(*) AS views
    FROM views
    GROUP BY user, session_window(at, '30 seconds')
    HAVING count(*) > 1
"""
PAIRS = """
    SELECT v.page, v.user, c.ad, v.at
    FROM views v LEFT JOIN clicks c
      ON c.page = v.page AND c.at BETWEEN v.at AND v.at + INTERVAL 20 SECONDS
"""
PLACED = """
    SELECT v.page, p.section, v.at
    FROM views v JOIN pages p ON p.page = v.page
    WHERE v.user <> 'robot'
"""
UNITED = """
    SELECT page, user AS section, at FROM views WHERE user <> 'robot'
    UNION ALL
    SELECT page, ad, at FROM clicks
"""
DELAY = "10 seconds"


def minutes(views, emit):
    minute = windows.tumbling("1 minute", time="at", by="page", watermark=DELAY, emit=emit)
    counts = F.count("*").alias("views"), F.max("seconds").alias("longest")
    return views.where("user <> 'robot'").transform(minute.agg(*counts)).drop("start", "kind")


def visits(views):
    visit = windows.session("30 seconds", time="at", by="user", watermark=DELAY)
    counted = views.transform(visit.agg(F.count("*").alias("views")))
    return counted.where("views > 1").drop("start", "kind")


def pairs(views, clicks):
    names = ("v", "c")
    near = joins.within(
        clicks, on="page", time="at", after="20 seconds", how="left", watermark=DELAY, names=names
    )
    return views.transform(near).select("page", "v.user", "c.ad", "v.at", "_source")


def placed(views, pages):
    known = views.where("user <> 'robot'").join(pages.select("page", "section"), "page")
    return known.select("page", "section", "at", "_source")


def united(views, clicks):
    seen = views.where("user <> 'robot'").withColumnRenamed("user", "section")
    shown = clicks.withColumnRenamed("ad", "section")
    columns = ["page", "section", "at", "_source"]
    return seen.select(*columns).union(shown.select(*columns))


class BothWays:
    """A pipeline of flows in both ways; `results` are their topics, by flow and way."""

    def __init__(self, name, *flows, mode="stream"):
        self.pipeline = Pipeline(name)
        events = {"minutes": Minute, "visits": Visit, "pairs": Pair, "placed": Placed, "united": Placed}
        self.results = {
            (flow, way): Topic(f"{name}.{flow}.{way}", events[flow])
            for flow in flows
            for way in ("sql", "python")
        }
        self._final = mode != "realtime"
        for flow in flows:
            getattr(self, f"_{flow}")(mode=mode)

    def _minutes(self, **options):
        def minutes_python(views):
            return minutes(views, "final" if self._final else "early")

        self._both("minutes", MINUTES, minutes_python, {"views": views}, **options)

    def _visits(self, **options):
        def visits_python(views):
            return visits(views)

        self._both("visits", VISITS, visits_python, {"views": views}, **options)

    def _pairs(self, **options):
        def pairs_python(views, clicks):
            return pairs(views, clicks)

        self._both("pairs", PAIRS, pairs_python, {"views": views, "clicks": clicks}, **options)

    def _placed(self, **options):
        def placed_python(views, pages):
            return placed(views, pages)

        options |= {"looks_up": {"pages": pages}, "watermark": None}
        self._both("placed", PLACED, placed_python, {"views": views}, **options)

    def _united(self, **options):
        def united_python(views, clicks):
            return united(views, clicks)

        options |= {"watermark": None}
        self._both("united", UNITED, united_python, {"views": views, "clicks": clicks}, **options)

    def _both(self, name, query, function, reads, **options):
        watermark = options.pop("watermark", dict.fromkeys(reads, DELAY))
        in_sql, in_python = (self.results[name, way] for way in ("sql", "python"))
        self.pipeline.sql(f"{name}_sql", query, reads=reads, writes=in_sql, watermark=watermark, **options)
        output = "append" if self._final else "update"
        self.pipeline.flow(reads=reads, writes=in_python, output=output, **options)(function)


both = BothWays("both", "minutes", "visits", "pairs", "placed", "united")
pipeline = both.pipeline  # which `penstock run` finds
