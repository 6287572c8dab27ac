"""The same ranking by a batch every few seconds: each run reads the whole hour again.

`python -m penstock.apps.trending.batch` runs it until it is killed, with a session that stays.
"""

import time
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from penstock.apps.trending.events import BatchRun, batch_runs, posts
from penstock.apps.trending.pipeline import BASELINE, COUNT, FLOOR, WINDOW
from penstock.durations import duration
from penstock.log import Producer
from penstock.process import read, session
from penstock.settings import Settings

EVERY = 5.0  # seconds


def ranked(posts: DataFrame, now: datetime) -> DataFrame:
    """Return the tags that have risen most in the window before a moment."""
    start = now - duration(WINDOW)
    is_new, is_of_the_hour = F.col("at") >= start, F.col("at") >= start - duration(BASELINE)
    counted = posts.where((F.col("at") < now) & is_of_the_hour).groupBy("tag")
    uses = counted.agg(F.count_if(is_new).alias("uses"), F.count_if(~is_new).alias("before"))
    usual = F.col("before") * (duration(WINDOW) / duration(BASELINE))
    growth = F.col("uses") / F.greatest(usual, F.lit(FLOOR))
    return uses.select("tag", growth.alias("growth")).orderBy(F.desc("growth"), F.desc("tag")).limit(COUNT)


def run_once(spark: SparkSession, settings: Settings) -> BatchRun:
    """Read all posts, and rank their tags as of now."""
    began, now = time.monotonic(), datetime.now(UTC)
    seen = Observation()
    everything = read(spark, posts, settings).observe(seen, F.count("*").alias("posts"))
    tags = [row.tag for row in ranked(everything, now).collect()]
    return BatchRun(now, tags, seen.get["posts"], time.monotonic() - began)


def main() -> None:
    """Run it again and again."""
    settings = Settings.load()
    spark = session(settings, name="trending-batch", partitions=2, shuffle=2)
    with Producer(settings) as producer:
        while True:  # until it is killed
            run = run_once(spark, settings)
            producer.send(batch_runs, run)
            producer.flush()
            time.sleep(max(0.0, EVERY - run.seconds))


if __name__ == "__main__":
    main()
