"""Views become visits: emitted when a session is over, and again when a late view changes it."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.sessions.events import too_late, views, visits
from penstock.pipeline import Pipeline
from penstock.process import windows
from penstock.process.windows import Late, agg
from penstock.targets import PostgresTable

TABLE = "sessions_visits"
DELAY = "10 minutes"  # that views may come late without a correction
sessions = Pipeline("sessions")


@sessions.flow(reads={"views": views}, writes=visits, side_outputs=(too_late,))
def visited(views: DataFrame) -> DataFrame:
    """A visit ends after half an hour without a view; for two hours more, late views correct it."""
    sessions = windows.session(
        "30 minutes",
        time="at",
        by="user",
        watermark=DELAY,
        late=Late.refire(within="2 hours").then(too_late),
    )
    return views.transform(
        sessions.agg(
            landing=agg.first("page"),
            last=agg.last("page"),
            median_ms=agg.percentile("load_ms", 0.5),
            p95_ms=agg.percentile("load_ms", 0.95),
        )
    )


@sessions.flow(reads={"visits": visits}, writes=PostgresTable(TABLE, key=("user", "start"), write="upsert"))
def latest(visits: DataFrame) -> DataFrame:
    """The visits as they are known now: a correction replaces its row, a retraction deletes it."""
    return visits.drop("id").withColumn("_deleted", F.col("kind") == "retracted")
