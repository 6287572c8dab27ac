"""Impressions and clicks become outcomes, and outcomes the click-through of each campaign."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.ads.events import clicks, impressions, outcomes
from penstock.pipeline import Pipeline
from penstock.process import joins, windows
from penstock.process.windows import Late, agg
from penstock.targets import PostgresTable

TABLE = "ads_click_through"
WINDOW = "10 minutes"
ads = Pipeline("ads")


def outcomes_of(impressions: DataFrame, clicks: DataFrame, within: str) -> DataFrame:
    """Each impression with its clicks, as they come; or with none, when none can come any more."""
    clicked = joins.within(
        clicks,
        on="impression",
        time="at",
        after=within,
        how="left",
        watermark="5 minutes",
        names=("shown", "clicked"),
    )
    return impressions.transform(clicked).select(
        "impression", "shown.campaign", "clicked.click", "shown.at", "_source"
    )


@ads.flow(reads={"impressions": impressions, "clicks": clicks}, writes=outcomes, output="append")
def matched(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """A click counts within the hour."""
    return outcomes_of(impressions, clicks, within="1 hour")


@ads.flow(
    reads={"outcomes": outcomes},
    writes=PostgresTable(TABLE, key=("campaign", "start"), write="upsert"),
)
def click_through(outcomes: DataFrame) -> DataFrame:
    """Impressions, clicks and their ratio; final when the hour after the window is over.

    An impression without a click is known an hour later than one with: after a pause by more than that, and
    then it corrects what was emitted.
    """
    windowed = windows.tumbling(
        WINDOW, time="at", by="campaign", watermark="70 minutes", late=Late.refire(within="1 day")
    )
    known = outcomes.withColumn("clicked", F.expr("if(click is null, null, impression)"))
    counted = known.transform(
        windowed.agg(
            impressions=agg.distinct("impression"),
            clicked=agg.distinct("clicked"),
            clicks=agg.distinct("click"),
        )
    )
    return counted.withColumn("ratio", F.col("clicked") / F.col("impressions"))
