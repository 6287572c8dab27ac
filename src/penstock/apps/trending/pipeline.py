"""The ten hashtags that rise most: of the last thirty seconds, ranked anew every five, or every thirty."""

from pyspark.sql import DataFrame

from penstock.apps.trending.events import hopping_trends, posts, tumbling_trends
from penstock.pipeline import Pipeline
from penstock.process import ranking

trending = Pipeline("trending")
COUNT, FLOOR = 10, 5.0  # a tag that is usually used less often counts as one that is used so often
WINDOW, HOP, BASELINE = "30 seconds", "5 seconds", "1 hour"
WATERMARK = "2 seconds"


@trending.flow(reads={"posts": posts}, writes=hopping_trends, output="append")
def hopping(posts: DataFrame) -> DataFrame:
    """A new ranking every five seconds."""
    return _rising(posts, every=HOP)


@trending.flow(
    reads={"posts": posts}, writes=tumbling_trends, output="append", checkpoint_interval="2 seconds"
)
def tumbling(posts: DataFrame) -> DataFrame:
    """The same by windows that only touch: a new ranking every thirty seconds."""
    return _rising(posts, every=WINDOW)


def _rising(posts: DataFrame, every: str) -> DataFrame:
    return posts.transform(
        ranking.rising(
            COUNT,
            by="tag",
            time="at",
            within=WINDOW,
            every=every,
            baseline=BASELINE,
            watermark=WATERMARK,
            floor=FLOOR,
        )
    )
