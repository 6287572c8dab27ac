"""The leaderboard with ten million players: how many games a second each of its flows takes on two cores."""

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from penstock.apps.leaderboard.events import TOPICS, Game, games
from penstock.apps.leaderboard.pipeline import leaderboard
from penstock.apps.leaderboard.rank import rank_of
from penstock.events.kinds import fields_of
from penstock.local import running
from penstock.log import Broker, apply
from penstock.pipeline import Runner
from penstock.process import session
from penstock.process.spark.java_client import java_settings
from penstock.process.wire.encoding import key_bytes, value_bytes
from penstock.registry import Registry
from penstock.schemas.formats import CODECS
from penstock.settings import Settings

PLAYERS = int(os.environ.get("BENCH_PLAYERS", "10_000_000"))
GAMES = PLAYERS // 5
ASKED = 1_000
WANTED = 500_000  # games a second


def main() -> None:
    with running() as settings, tempfile.TemporaryDirectory() as folder:
        place = replace(settings, data=Path(folder))
        spark = session(place, name="leaderboard", partitions=2, shuffle=2)
        apply(TOPICS, Broker(place))
        print(f"{PLAYERS:,} players have played once; then {GAMES:,} games of random players\n")
        send(place, spark.range(PLAYERS).selectExpr("id as player"))
        loaded = ", ".join(f"{flow} {rate:,.0f}" for flow, rate in run(spark, place))
        print(f"players that are new, a second: {loaded}\n", flush=True)
        send(place, spark.range(GAMES).selectExpr(f"cast(rand(1) * {PLAYERS} as long) as player"))
        print("| flow | games/s on two cores | cores for 500,000/s |\n|---|---:|---:|")
        for flow, rate in run(spark, place):
            print(f"| {flow} | {rate:,.0f} | {2 * WANTED / rate:,.0f} |", flush=True)
        spark.stop()
        asked(place)


def send(settings: Settings, players: DataFrame) -> None:
    """Write a game of each player; Spark writes them, which is quickest."""
    with Registry(settings) as registry:
        schema = CODECS["avro"].numbered(Game, games.subject, registry, ())
    columns = {
        "player": F.col("player"),
        "points": (F.rand(2) * 20 + 1).cast("long"),
        "at": F.current_timestamp(),
        "id": F.uuid(),
    }
    fields = {field.name: columns[field.name] for field in fields_of(Game)}
    value = value_bytes(games, fields, schema, F.lit(True)).alias("value")
    options = {f"kafka.{each}": value for each, value in java_settings(settings).items()}
    rows = players.select(F.lit(games.name).alias("topic"), key_bytes(games, fields).alias("key"), value)
    rows.write.format("kafka").options(**options).option("kafka.compression.type", "lz4").save()


def run(spark: SparkSession, settings: Settings) -> Iterator[tuple[str, float]]:
    """Let each flow take what waits for it, one after the other; yield how many rows it took a second."""
    for flow in leaderboard.flows:
        with Runner(leaderboard, settings, spark=spark, once=True, flows=[flow]) as runner:
            before = {(each.run, each.batch) for each in runner.progress.recent(leaderboard.name, flow)}
            began = time.perf_counter()
            runner.wait()
            seconds = time.perf_counter() - began
            batches = [
                each
                for each in runner.progress.recent(leaderboard.name, flow)
                if (each.run, each.batch) not in before
            ]
        yield flow, sum(each.rows for each in batches) / seconds


def asked(settings: Settings) -> None:
    """How long the rank of a player takes, on request."""
    random, taken = Random(1), []
    with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
        connection.execute("ANALYZE")
        for _ in range(ASKED):
            began = time.perf_counter()
            rank_of(connection, random.randrange(PLAYERS))
            taken.append(1000 * (time.perf_counter() - began))
    ordered = sorted(taken)
    print(
        f"\na rank: {statistics.median(ordered):.1f} ms, 99 of 100 within {ordered[int(0.99 * ASKED)]:.1f} ms"
    )
