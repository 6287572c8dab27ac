"""The points of each player; of these the best hundred, and how many players have how many points."""

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.apps.leaderboard.events import games, totals
from penstock.pipeline import Pipeline
from penstock.process import keyed, ranking
from penstock.process.windows import agg
from penstock.targets import PostgresTable

leaderboard = Pipeline("leaderboard")
BEST = 100
WIDTHS = (1, 1_000)  # of levels: one for each number of points, and one for a thousand of them

top_table = PostgresTable("leaderboard_top", key="place", write="upsert")
players_table = PostgresTable("leaderboard_players", key="player", write="upsert")
levels_table = PostgresTable("leaderboard_levels", key=("width", "level"), write="upsert")


@leaderboard.flow(reads={"games": games}, writes=totals, output="append")
def add_up(games: DataFrame) -> DataFrame:
    """The new total of every player who has played, beside the one before."""
    returns = "player long, before long, points long, at timestamp"
    return games.transform(keyed.stateful(added, by="player", state="points long", returns=returns))


def added(games: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add points to those that players have."""
    new = games.group_by("player").agg(pl.col("points").sum().alias("new"), pl.col("at").max())
    points = (pl.col("before").fill_null(0) + pl.col("new")).alias("points")
    now = state.rename({"points": "before"}).join(new, on="player").select("player", "before", points, "at")
    return now.select("player", "points"), now


@leaderboard.flow(reads={"totals": totals}, writes=top_table, output="append")
def top(totals: DataFrame) -> DataFrame:
    """The best hundred players; as points only grow, no others have to be kept."""
    best = ranking.top(BEST, "points", by="player", keep=BEST, points=agg.max("points"), at=agg.max("at"))
    return totals.transform(best)


@leaderboard.flow(reads={"totals": totals}, writes=players_table, checkpoint_interval="1 second")
def players(totals: DataFrame) -> DataFrame:
    """The points of each player, to be looked up."""
    return totals.select("player", "points", "_source")


@leaderboard.flow(
    reads={"totals": totals}, writes=levels_table, output="append", checkpoint_interval="1 second"
)
def levels(totals: DataFrame) -> DataFrame:
    """How many players have so many points: whoever gets more leaves a level and comes to another."""
    moves = [
        F.struct(
            F.lit(width).alias("width"), F.floor(F.col(points) / width).alias("level"), F.lit(by).alias("by")
        )
        for width in WIDTHS
        for points, by in (("before", -1), ("points", 1))
    ]
    moved = totals.select(F.inline(F.array(*moves))).where("level is not null")
    returns = "width int, level long, players long, _deleted boolean"
    return moved.transform(
        keyed.stateful(counted, by=("width", "level"), state="players long", returns=returns)
    )


def counted(moves: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add what has come and gone to the players of levels; an empty level is forgotten."""
    change = moves.group_by("width", "level").agg(pl.col("by").sum())
    players = (pl.col("players").fill_null(0) + pl.col("by")).alias("players")
    now = state.join(change, on=["width", "level"]).select("width", "level", players)
    is_empty = pl.col("players") == 0
    return now.filter(~is_empty), now.with_columns(is_empty.alias("_deleted"))
