"""Requests that repeat each other become one notification, which a webhook delivers."""

from pyspark.sql import DataFrame

from penstock.apps.notifications.events import due, requested, too_late
from penstock.pipeline import Pipeline
from penstock.process import dedup
from penstock.process.windows import Late
from penstock.targets import Webhook
from penstock.targets.webhook import Retries

CONNECTION = "notifier"
to_notifier = Webhook(
    connection=CONNECTION,
    key="user",
    columns=("user", "occasion", "text"),
    timeout="2 seconds",
    retries=Retries(attempts=8, backoff="100 ms"),
)
notifications = Pipeline("notifications")


@notifications.flow(reads={"requested": requested}, writes=due, side_outputs=(too_late,), output="append")
def once(requested: DataFrame) -> DataFrame:
    """Only the first request of a user and an occasion within 24 hours is due."""
    first = dedup.first(
        ("user", "occasion"), time="at", within="24 hours", watermark="1 hour", late=Late.send(too_late)
    )
    return requested.transform(first)


@notifications.flow(reads={"due": due}, writes=to_notifier, lanes=4)
def deliver(due: DataFrame) -> DataFrame:
    """Post what is due, to each user in order; the id is the Idempotency-Key."""
    return due
