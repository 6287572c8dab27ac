"""Nexmark's queries over joins, on Penstock's operators; the columns are those of `reference.answer`.

q4 and q9 emit an answer anew whenever it changes: the last one of each key counts.
"""

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.process import joins, keyed

BUCKETS = 4
CATEGORY, STATES = 10, ("OR", "ID", "CA")
SIDE_ROWS = 10_000
ANSWERS = {
    "q4": "category",
    "q9": "auction",
}  # by what the answers of queries that emit them anew are distinguished


def q3(persons: DataFrame, auctions: DataFrame) -> DataFrame:
    """Who sells in a category, of some states."""
    sold = _table(auctions).where(F.col("category") == CATEGORY)
    lives = _table(persons).where(F.col("state").isin(*STATES))
    found = sold.transform(
        joins.tables(
            lives, on=("seller", "id"), keys=("id", "id"), names=("auction", "person"), buckets=BUCKETS
        )
    )
    return found.select("person.name", "person.city", "person.state", "auction.id")


def q4(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    """The average of the highest bids of a category's auctions."""
    best = _in_life(auctions, bids).transform(
        keyed.stateful(
            highest, by="auction", state="category long, price long",
            returns="category long, price long, before long", buckets=BUCKETS,
        )
    )  # fmt: skip
    return best.transform(
        keyed.stateful(
            average, by="category", state="total long, auctions long",
            returns="category long, average double", buckets=BUCKETS,
        )
    )  # fmt: skip


def q9(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    """The winning bid of each auction."""
    kept = "bidder long, price long, bid_at timestamp, n long"
    return _in_life(auctions, bids).transform(
        keyed.stateful(winning, by="auction", state=kept, returns=f"auction long, {kept}", buckets=BUCKETS)
    )


def q13(bids: DataFrame) -> DataFrame:
    """Bids with a row of a table that does not change."""
    side = bids.sparkSession.range(SIDE_ROWS).select("id", F.concat(F.lit("side-"), "id").alias("value"))
    beside = bids.withColumn("id", F.col("auction") % SIDE_ROWS).join(F.broadcast(side), "id")
    return beside.select("auction", "bidder", "price", "at", "n", "value")


def q20(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    """Bids with their auctions, of a category."""
    found = _with_auction(auctions.where(F.col("category") == CATEGORY), bids)
    return found.select("bid.n", "bid.bidder", "bid.price", "auction.id", "auction.item", "auction.seller")


def highest(rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the highest price of each auction, and emit it beside the one before."""
    best = rows.group_by("auction").agg(
        pl.col("price").max().alias("new"), pl.col("category").first().alias("of")
    )
    both = state.join(best, on="auction").with_columns(
        pl.col("price").alias("before"), pl.max_horizontal("price", "new").alias("price")
    )
    emitted = both.filter(pl.col("price").ne_missing(pl.col("before"))).with_columns(category=pl.col("of"))
    return both.with_columns(category=pl.col("of")), emitted


def average(rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the sum and the number of the highest prices of each category."""
    new = rows.group_by("category").agg(
        (pl.col("price") - pl.col("before").fill_null(0)).sum().alias("more"),
        pl.col("before").is_null().sum().alias("come"),
    )
    now = state.join(new, on="category").select(
        "category",
        total=pl.col("total").fill_null(0) + pl.col("more"),
        auctions=pl.col("auctions").fill_null(0) + pl.col("come"),
    )
    return now, now.select("category", average=pl.col("total") / pl.col("auctions"))


def winning(rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the best bid of each auction: the highest, of those the earliest."""
    known = state.filter(pl.col("n").is_not_null())
    bids = pl.concat([known, rows.select(known.columns)])
    best = bids.sort("price", "bid_at", "n", descending=[True, False, False]).unique(
        "auction", keep="first", maintain_order=True
    )
    return best, best.join(known, on=["auction", "n"], how="anti")


def _in_life(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    """Bids with what they need of their auctions, as long as those are open."""
    found = _with_auction(auctions, bids).where("bid.at between auction.at and auction.expires")
    return found.select(
        F.col("auction.id").alias("auction"), "auction.category",
        "bid.bidder", "bid.price", F.col("bid.at").alias("bid_at"), "bid.n",
    )  # fmt: skip


def _with_auction(auctions: DataFrame, bids: DataFrame) -> DataFrame:
    """Neither changes: what is emitted is emitted once."""
    return _table(bids).transform(
        joins.tables(
            _table(auctions),
            on=("auction", "id"),
            keys=("n", "id"),
            names=("bid", "auction"),
            buckets=BUCKETS,
        )
    )


def _table(rows: DataFrame) -> DataFrame:
    """Events as the rows of a table, each at its place."""
    place = F.struct(
        F.lit("nexmark").alias("topic"), F.lit(0).alias("partition"),
        F.col("n").alias("offset"), F.col("at").alias("written"),
    )  # fmt: skip
    return rows.withColumn("_source", place)
