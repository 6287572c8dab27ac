"""The spike's flow as a process: the count of a card's events within a minute, in one of three modes."""

import sys

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from penstock.process import session

MINUTE = 60_000_000
SHAPE = "card string, id string, at timestamp"
WITHIN = f"size(filter(h, x -> x.us > e.us - {MINUTE} and x.us <= e.us))"


def main(mode: str, servers: str, source: str, target: str, checkpoint: str) -> None:
    spark = session(partitions=4, shuffle=3)
    spark.sparkContext.setLogLevel("OFF")
    read = {
        "kafka.bootstrap.servers": servers,
        "subscribe": source,
        "startingOffsets": "earliest",
        "kafka.isolation.level": "read_committed",
    }
    write = {"kafka.bootstrap.servers": servers, "topic": target, "kafka.linger.ms": "0"}
    if mode == "replay":
        replay(spark, read).write.format("kafka").options(**write).save()
        return
    results = stream(typed(spark.readStream.format("kafka").options(**read).load()))
    writer = results.writeStream.format("kafka").options(**write).outputMode("update")
    writer = writer.option("checkpointLocation", checkpoint)
    trigger = {"realTime": "5 seconds"} if mode == "realtime" else {"processingTime": "0 seconds"}
    writer.trigger(**trigger).start().awaitTermination()


def typed(raw: DataFrame) -> DataFrame:
    event = F.from_json(F.col("value").cast("string"), SHAPE)
    return raw.select("partition", "offset", event.alias("event")).select(
        "partition", "offset", "event.*", F.unix_micros("event.at").alias("us")
    )


def stream(events: DataFrame) -> DataFrame:
    """The last events of a card in buckets of time, so that state expires; one row out for each row in."""
    place = "us, partition, offset"
    kept = (
        events.withWatermark("at", "2 minutes")
        .groupBy("card", F.window("at", "2 minutes", "1 minute").alias("w"))
        .agg(
            F.expr(f"max_by(struct({place}), struct({place}), 256)").alias("h"),
            F.last(F.struct(*place.split(", "))).alias("e"),
        )
    )
    reaches_back = f"unix_micros(w.start) = (e.us div {MINUTE} - 1) * {MINUTE}"
    return kept.where(reaches_back).select(result_id("e.partition", "e.offset"), answer(WITHIN))


def replay(spark: SparkSession, options: dict[str, str]) -> DataFrame:
    """The same as a window function over the log's order of each card."""
    events = typed(spark.read.format("kafka").options(**options).load())
    so_far = (
        Window.partitionBy("card").orderBy("partition", "offset").rowsBetween(Window.unboundedPreceding, 0)
    )
    kept = events.select(
        F.struct("us", "partition", "offset").alias("e"),
        F.collect_list(F.struct("us")).over(so_far).alias("h"),
    )
    return kept.select(result_id("e.partition", "e.offset"), answer(WITHIN))


def result_id(*columns: str) -> Column:
    return F.concat_ws("/", *columns).alias("key")


def answer(expression: str) -> Column:
    return F.expr(f"cast({expression} as string)").alias("value")


if __name__ == "__main__":
    main(*sys.argv[1:])
