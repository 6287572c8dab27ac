"""Page views: the pipelines that the tests of windows run, as streams, in real time and in replay."""

from dataclasses import dataclass
from datetime import datetime

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.process import keyed, windows
from penstock.process.windows import Late, agg


@dataclass(frozen=True)
class View(Event):
    page: str
    seconds: float
    at: datetime


@dataclass(frozen=True)
class PageViews(Event, time="end"):
    page: str
    start: datetime
    end: datetime
    kind: str
    rows: int
    longest: float | None


@dataclass(frozen=True)
class Visits(Event, time="end"):
    page: str
    start: datetime
    end: datetime
    kind: str
    views: int


@dataclass(frozen=True)
class ViewBefore(Event):
    """A view, and how many there were of its page in the minute that ends with it."""

    page: str
    at: datetime
    kind: str
    rows: int


@dataclass(frozen=True)
class NumberedView(Event):
    """A view, and which one of its page it was."""

    page: str
    at: datetime
    number: int


views = Topic("pages.views", View, key="page", partitions=2)
minutes = Topic("pages.minutes", PageViews, key="page")
late_views = Topic("pages.late", View, key="page")
visits = Topic("pages.visits", Visits, key="page")
live = Topic("pages.live", Visits, key="page")
before = Topic("pages.before", ViewBefore, key="page")
numbered = Topic("pages.numbered", NumberedView, key="page")
history = Topic("pages.history", PageViews, key="page")

pages, archive = Pipeline("pages"), Pipeline("pages-archive")


@pages.flow(reads={"views": views}, writes=minutes, side_outputs=(late_views,))
def by_minute(views: DataFrame) -> DataFrame:
    """Views of each page by the minute, corrected for five minutes after."""
    counted = windows.tumbling(
        "1 minute",
        time="at",
        by="page",
        watermark="20 seconds",
        late=Late.refire(within="5 minutes").then(late_views),
        buckets=4,
    )
    return views.transform(counted.agg(longest=agg.max("seconds")))


@pages.flow(reads={"views": views}, writes=visits, output="append")
def by_visit(views: DataFrame) -> DataFrame:
    """Views of each page that come close to each other."""
    visit = windows.session("15 seconds", time="at", by="page", watermark="10 minutes")
    return views.transform(visit.agg(F.count("*").alias("views")))


@pages.flow(reads={"views": views}, writes=before)
def by_view(views: DataFrame) -> DataFrame:
    """Each view with those before it."""
    around = windows.sliding("1 minute", time="at", by="page", watermark="10 minutes", buckets=4)
    return views.transform(around.agg(longest=agg.max("seconds"))).drop("start", "end", "longest", "seconds")


def number_views(views: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number the views of each page."""
    known = views.join(state, on="page", how="left", maintain_order="left")
    number = pl.col("views").fill_null(0) + pl.int_range(1, pl.len() + 1).over("page")
    emitted = known.select("id", "page", "at", number.alias("number"))
    return emitted.group_by("page").agg(pl.col("number").max().alias("views")), emitted


@pages.flow(reads={"views": views}, writes=numbered, output="append")
def by_number(views: DataFrame) -> DataFrame:
    """Each view with its number among those of its page, in the order of the log."""
    returns = "id string, page string, at timestamp, number long"
    return views.transform(
        keyed.stateful(number_views, by="page", state="views long", returns=returns, buckets=4)
    )


@archive.flow(reads={"views": views}, writes=history, mode="replay", lanes=3)
def by_hour(views: DataFrame) -> DataFrame:
    """Views of each page by the hour, from the log."""
    hours = windows.tumbling("1 hour", time="at", by="page", watermark="20 seconds", buckets=4)
    return views.transform(hours.agg(longest=agg.max("seconds")))


@pages.flow(reads={"views": views}, writes=live, mode="realtime", checkpoint_interval="5 seconds")
def as_they_come(views: DataFrame) -> DataFrame:
    """Views of the last minutes, emitted again with every view."""
    hops = windows.hopping(
        "2 minutes", every="1 minute", time="at", by="page", watermark="10 minutes", emit="early"
    )
    return views.transform(hops.agg(F.count("*").alias("views")))
