"""Events with rows of a table, from a copy that its changelog feeds or by asking its database."""

import statistics
import tempfile
from pathlib import Path

import psycopg
from pyspark.sql import DataFrame, SparkSession

from bench.joins import EVENTS, SOURCE, Query, run, write_events, write_rows
from penstock.local import running
from penstock.process import joins, session
from penstock.settings import Settings, reveal

ROWS, BATCHES = 1_000_000, 8
CARDS = (10_000, ROWS)  # of how many the events are
SCHEMAS = (f"card string, amount double, {SOURCE}", f"card string, home string, {SOURCE}")
FILL = f"""
    create table profiles as
        select 'card-' || n as card, 'home' as home from generate_series(0, {ROWS - 1}) n;
    alter table profiles add primary key (card);
    analyze profiles"""
ASK = "select card, home from profiles where card = any(%s)"
ASKED = "select sum(xact_commit) from pg_stat_database"


def main() -> None:
    print(
        f"batches of {EVENTS:,} events beside a table of {ROWS:,} rows: the {BATCHES - 2} after the second\n"
    )
    print("| the events are of | from | batch, median | events/s | questions to the database in a batch |")
    print("|---:|---|---:|---:|---:|")
    spark = session(name="bench", partitions=2, shuffle=2)
    with running(services=("postgres",)) as settings, tempfile.TemporaryDirectory() as folder:
        _answer(settings, FILL)
        for cards in CARDS:
            own = Path(folder) / str(cards)
            for number in range(BATCHES):
                write_events(spark, own / "events", EVENTS, cards, number)
            write_rows(spark, own / "table", "id", ROWS)
            for name, query in ways(settings).items():
                shown = measure(spark, settings, own, own / f"state of {name}", query)
                print(f"| {cards:,} cards | {name} | {shown} |", flush=True)
    spark.stop()


def ways(settings: Settings) -> dict[str, Query]:
    asked = joins.remote(
        joins.Postgres(reveal(settings.postgres or ""), ASK),
        on="card", returns="card string, home string", name="profile",
        ttl="1 hour", rate=1_000, at_most=ROWS,
    )  # fmt: skip

    def copied(events: DataFrame, table: DataFrame) -> DataFrame:
        return events.transform(joins.latest(table, on="card", name="profile"))

    return {"its changelog": copied, "the database": lambda events, _: events.transform(asked)}


def measure(spark: SparkSession, settings: Settings, own: Path, place: Path, query: Query) -> str:
    before = _answer(settings, ASKED)
    seconds = run(spark, own, ("events", "table"), SCHEMAS, query, place, "update")
    asked = (_answer(settings, ASKED) - before) / BATCHES
    batch = statistics.median(seconds[2:])
    return f"{batch:.2f} s | {EVENTS / batch:,.0f} | {asked:,.0f}"


def _answer(settings: Settings, query: str) -> int:
    with psycopg.connect(reveal(settings.postgres or ""), autocommit=True) as connection:
        found = connection.execute(query)
        row = found.fetchone() if found.description else None
        return int(row[0]) if row else 0
