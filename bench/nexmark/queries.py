"""Nexmark's queries over windows, on Penstock's operators; columns are those of `reference.answer`."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bench.nexmark.joins import q3, q4, q9, q13, q20
from penstock.process import windows
from penstock.process.windows import agg
from penstock.process.windows.aggregates import Aggregate

DELAY = "4 seconds"
BUCKETS = 4
_EVER = "36500 days"  # from 1970 on, everything is in one such window
_RANKS = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 and price < 1000000",
    "rank3": "price >= 1000000",
}
_BID = ("auction", "bidder", "price", "channel", "url", "at", "extra", "n")


def q5(bids: DataFrame) -> DataFrame:
    """The auctions with the most bids of the last 10 seconds, every 2 seconds."""
    hops = windows.hopping(
        "10 seconds", every="2 seconds", time="at", by="auction", watermark=DELAY, buckets=BUCKETS
    )
    top = bids.transform(hops.top(100, "bids", F.count("*").alias("bids"))).where("rank = 1")
    return top.select(*_bounds(), "auction", "bids")


def q7(bids: DataFrame) -> DataFrame:
    """The highest bids of every 10 seconds."""
    tens = windows.tumbling("10 seconds", time="at", watermark=DELAY, buckets=BUCKETS)
    best = bids.transform(tens.agg(_greatest("price", 50)))
    highest = F.filter("best", lambda bid: bid["price"] == F.col("best")[0]["price"])
    return best.select(*_bounds(), F.inline(highest)).select(
        "window_start", "window_end", "auction", "bidder", "price", "at", "extra", "n"
    )


def q8(persons: DataFrame, auctions: DataFrame) -> DataFrame:
    """Who registered and opened an auction within the same 10 seconds."""
    came = persons.select("id", "name", "at", F.lit(False).alias("sold"))
    sold = auctions.select(F.col("seller").alias("id"), F.lit(None).cast("string"), "at", F.lit(True))
    tens = windows.tumbling("10 seconds", time="at", by="id", watermark=DELAY, buckets=BUCKETS)
    met = came.union(sold).transform(tens.agg(F.max("name").alias("name"), F.bool_or("sold").alias("sold")))
    return met.where("sold and name is not null").select(*_bounds(), "id", "name")


def q11(bids: DataFrame) -> DataFrame:
    """How many bids a bidder made in each session."""
    sessions = windows.session("10 seconds", time="at", by="bidder", watermark=DELAY, buckets=BUCKETS)
    counted = bids.transform(sessions.agg(bids=agg.count()))
    return counted.select("bidder", *_bounds("session"), "bids")


def q12(bids: DataFrame) -> DataFrame:
    """How many bids of a bidder arrived in every 10 seconds."""
    tens = windows.tumbling("10 seconds", time="arrived", by="bidder", watermark=DELAY, buckets=BUCKETS)
    counted = bids.transform(tens.agg(F.count("*").alias("bids")))
    return counted.select(*_bounds(), "bidder", "bids")


def q15(bids: DataFrame) -> DataFrame:
    """Bids, bidders and auctions of each day, by price."""
    days = windows.tumbling("1 day", time="at", watermark=DELAY, buckets=BUCKETS)
    counted = _by_rank(bids).transform(days.agg(**_counts("n", "bids"), **_different()))
    return counted.select(_day(), *_counts("n", "bids"), *_different())


def q16(bids: DataFrame) -> DataFrame:
    """The same for each channel, with the latest minute."""
    days = windows.tumbling("1 day", time="at", by="channel", watermark=DELAY, buckets=BUCKETS)
    dated = _by_rank(bids).withColumn("minute", F.date_format("at", "HH:mm"))
    counts = {**_counts("n", "bids"), **_different()}
    counted = dated.transform(days.agg(minute=agg.max("minute"), **counts))
    return counted.select("channel", _day(), "minute", *counts)


def q17(bids: DataFrame) -> DataFrame:
    """Bids and prices of each auction and day."""
    days = windows.tumbling("1 day", time="at", by="auction", watermark=DELAY, buckets=BUCKETS)
    prices = {
        "min_price": agg.min("price"),
        "max_price": agg.max("price"),
        "avg_price": agg.avg("price"),
        "sum_price": agg.sum("price"),
    }
    counted = _by_rank(bids).transform(days.agg(**_counts("n", "bids"), **prices))
    return counted.select("auction", _day(), *_counts("n", "bids"), *prices)


def q18(bids: DataFrame) -> DataFrame:
    """The last bid of each bidder on each auction."""
    ever = windows.tumbling(_EVER, time="at", by=("bidder", "auction"), watermark=DELAY, buckets=BUCKETS)
    rest = ("price", "channel", "url", "at", "extra", "n")
    last = bids.withColumn("bid", F.struct(*rest)).transform(ever.agg(bid=agg.last("bid")))
    return last.select("bidder", "auction", "bid.*")


def q19(bids: DataFrame) -> DataFrame:
    """The ten highest bids of each auction."""
    ever = windows.tumbling(_EVER, time="at", by="auction", watermark=DELAY, buckets=BUCKETS)
    best = bids.transform(ever.agg(_greatest("price", 10)))
    placed = best.select(F.posexplode("best").alias("place", "bid"))
    return placed.select(
        "bid.auction", (F.col("place") + 1).cast("long").alias("rank"),
        *(f"bid.{name}" for name in ("bidder", "price", "channel", "url", "at", "extra", "n")),
    )  # fmt: skip


QUERIES: dict[str, Callable[..., DataFrame]] = {
    each.__name__: each for each in (q3, q4, q5, q7, q8, q9, q11, q12, q13, q15, q16, q17, q18, q19, q20)
}


def _bounds(what: str = "window") -> list[Column]:
    return [F.col(place).alias(f"{what}_{place}") for place in ("start", "end")]


def _day() -> Column:
    return F.date_format("start", "yyyy-MM-dd").alias("day")


def _greatest(order: str, count: int) -> Column:
    """The bids with the greatest values; of equal ones those that came first."""
    first = F.struct(F.col(order), -F.col("n"))
    return F.call_function("max_by", F.struct(*_BID), first, F.lit(count)).alias("best")


def _by_rank(bids: DataFrame) -> DataFrame:
    """Columns that are null where a bid is not of the rank."""
    ranked = [
        F.when(F.expr(which), F.col(name)).alias(f"{rank}_{name}")
        for rank, which in _RANKS.items()
        for name in ("n", "bidder", "auction")
    ]
    return bids.select("*", *ranked)


def _counts(column: str, name: str) -> dict[str, Aggregate]:
    return {f"{rank}_{name}": agg.count(f"{rank}_{column}") for rank in _RANKS}


def _different() -> dict[str, Aggregate]:
    return {
        f"{rank}_{name}": agg.distinct(f"{rank}_{column}")
        for column, name in (("bidder", "bidders"), ("auction", "auctions"))
        for rank in _RANKS
    }
