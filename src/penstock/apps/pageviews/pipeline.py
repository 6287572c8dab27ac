"""Views of each page by the minute, as it fills up and when it is over; and the ten most viewed pages now."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.apps.pageviews.events import about, live, too_late, views
from penstock.pipeline import Pipeline
from penstock.process import sketches, windows
from penstock.process.windows import Late, agg
from penstock.targets import PostgresTable

pageviews = Pipeline("pageviews")
WATERMARK = "10 seconds"  # how far a view may be behind others of its partition and still be on time
ALLOWED_LATENESS = "10 minutes"  # how long a minute is corrected
PROMPT = "30 seconds"  # a view that takes longer to the log is not one of now
COUNT, TRACKED = 10, 256
MINUTES = ("url", "start", "end", "kind", "rows", "views", "visitors")

minutes_table = PostgresTable("pageviews_minutes", key=("url", "start"), write="upsert", columns=MINUTES)
top_table = PostgresTable("pageviews_top", key=("end", "url"), write="upsert")


@pageviews.flow(reads={"views": views}, writes=live, mode="realtime", checkpoint_interval="30 seconds")
def running_minutes(views: DataFrame) -> DataFrame:
    """The minutes as they fill up: emitted again at every change, also by a view that is late."""
    open_longer = "11 minutes"  # than the allowed lateness
    minutes = windows.tumbling("1 minute", time="at", by="url", watermark=open_longer, emit="early")
    written = F.max("_source.written").alias("written")
    counted = views.transform(minutes.agg(F.count("*").alias("views"), written))
    return counted.select(_id("url", "start"), "url", "start", "views", "written")


@pageviews.flow(
    reads={"views": views},
    writes=minutes_table,
    side_outputs=(too_late,),
    output="append",
    checkpoint_interval="2 seconds",
)
def minutes(views: DataFrame) -> DataFrame:
    """The minutes when they are over, corrected for ten minutes; what is later goes to a side output."""
    policy = Late.refire(within=ALLOWED_LATENESS).then(too_late)
    each = windows.tumbling("1 minute", time="at", by="url", watermark=WATERMARK, late=policy, buckets=4)
    return views.transform(each.agg(views=agg.count(), visitors=agg.distinct("visitor")))


@pageviews.flow(reads={"views": views}, writes=top_table, output="append", checkpoint_interval="5 seconds")
def top(views: DataFrame) -> DataFrame:
    """The ten most viewed pages of the last minute, exactly, every ten seconds."""
    recent = windows.hopping("1 minute", every="10 seconds", time="at", by="url", watermark=WATERMARK)
    return views.where(_is_prompt()).transform(recent.top(COUNT, "views", F.count("*").alias("views")))


@pageviews.flow(reads={"views": views}, writes=about, output="append", checkpoint_interval="5 seconds")
def about_top(views: DataFrame) -> DataFrame:
    """The same by a sketch: however many pages there are, it keeps a few hundred of them."""
    recent = windows.hopping("1 minute", every="10 seconds", time="at", watermark=WATERMARK)
    most = sketches.frequent("url", COUNT, tracked=TRACKED).alias("most")
    found = views.where(_is_prompt()).transform(recent.agg(F.count("*").alias("views"), most))
    pages = F.transform(
        "most", lambda each: F.struct(each["item"].alias("url"), each["count"].alias("views"))
    )
    return found.select(_id("end"), "start", "end", "views", pages.alias("pages"))


def _is_prompt() -> Column:
    return F.col("_source.written") < F.col("at") + F.expr(f"interval {PROMPT}")


def _id(*names: str) -> Column:
    """What identifies a result: the next one of the same id replaces it."""
    return F.concat_ws(" ", *(F.col(name).cast("string") for name in names)).alias("id")
