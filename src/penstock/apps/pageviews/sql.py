"""The running minutes once more, as a flow in SQL: the same results as `running_minutes` in pipeline.py."""

from dataclasses import replace

from penstock.apps.pageviews.events import live, views
from penstock.pipeline import Pipeline

pageviews_sql = Pipeline("pageviews-sql")
live_sql = replace(live, name="pageviews.live-sql")

running_minutes = pageviews_sql.sql(
    "running_minutes",
    """
    SELECT
        concat_ws(' ', url, cast(window.start AS string)) AS id,
        url,
        window.start AS start,
        count(*) AS views,
        max(_source.written) AS written
    FROM views
    GROUP BY url, window(at, '1 minute')
    """,
    reads={"views": views},
    writes=live_sql,
    mode="realtime",
    checkpoint_interval="30 seconds",
    watermark={"views": "11 minutes"},
)
