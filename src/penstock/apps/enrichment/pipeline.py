"""Activity beside the users of a captured table."""

from pyspark.sql import DataFrame

from penstock.apps.enrichment.events import activity, enriched, users
from penstock.pipeline import Pipeline
from penstock.process import joins

enrichment = Pipeline("enrichment")


@enrichment.flow(reads={"activity": activity, "users": users}, writes=enriched)
def with_country(activity: DataFrame, users: DataFrame) -> DataFrame:
    """Each event with the country that the user has now; the table is a copy in the flow's own state."""
    beside = activity.transform(joins.latest(users, on="user_id", name="user"))
    return beside.select("id", "user_id", "kind", "user.country", "at", "_source")
