"""Balances rebuilt from 50 million archived events, and from the view's latest snapshot: `make bench-large`.

What is timed is `penstock rebuild` as a function, in a session that is there: the log is read, the balances
are in a new table of PostgreSQL's, and that is put in the place of the old one. The first rebuild has the
archive and nothing else; before the second one more events come, so that it has the first one's snapshot and
a tail in Kafka. Both tables are compared with what was added up while the events were made, row by row.
`bench/account_archive.py` says how the archive is made. Java has 4 GB and its parallel collector.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psycopg
from pyspark.sql import SparkSession

from bench.account_archive import Accounts
from penstock.apps.bank.views import balances
from penstock.local import running
from penstock.log import Producer
from penstock.pipeline import Pipeline, rebuild
from penstock.process import read, session
from penstock.settings import Settings
from penstock.sourcing import topic_of
from penstock.targets import PostgresTable

EVENTS, ACCOUNTS, PARTITIONS, TAIL = 50_000_000, 100_000, 4, 100_000
# For a batch: room to sort in, and the collector of garbage that has the highest throughput.
BATCH = {"spark.driver.memory": "4g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
topic = topic_of("bench", "account", partitions=PARTITIONS)
bench = Pipeline("bench")
bench.flow(
    name="balances",
    reads={"records": topic},
    writes=PostgresTable("bench_balances", key="account", write="upsert"),
)(balances)


def main(events: int = EVENTS) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder, running() as settings:
        made = Accounts(events, ACCOUNTS, PARTITIONS)
        begun = time.perf_counter()
        expected = made.make(topic, Path(folder), settings)
        size = sum(each.stat().st_size for each in Path(folder).rglob("*.parquet")) / 2**30
        took = time.perf_counter() - begun
        print(f"{events:,} events of {ACCOUNTS:,} accounts: {size:.1f} GiB archived, made in {took:.0f} s\n")
        spark = session(settings, name="bench", partitions=2, shuffle=2, config=BATCH)
        _measure(_Bank(made, settings, spark, expected))
        spark.stop()


@dataclass
class _Bank:
    """The bank as it is: what was made, and what its accounts must have."""

    made: Accounts
    settings: Settings
    spark: SparkSession
    expected: np.ndarray

    def rebuilt(self) -> None:
        """Make the table of balances again."""
        rebuild(bench, "balances", self.settings, self.spark)

    def viewed(self) -> None:
        """Compute all balances of the archive, and leave them there."""
        rows = read(self.spark, topic, self.settings, ordered=False)
        balances(rows).write.format("noop").mode("overwrite").save()

    def go_on(self) -> None:
        """Let more events happen, which are in Kafka."""
        with Producer(self.settings) as producer:
            for partition in range(PARTITIONS):
                rows, changed = self.made.more(partition, TAIL // PARTITIONS)
                self.expected += changed
                for key, value in rows:
                    producer.send_bytes(topic.name, key, value, partition=partition)

    def check(self) -> None:
        """Refuse a table that is not what the events come to."""
        with psycopg.connect(self.settings.dsn().value) as connection:
            found = connection.execute("SELECT account, balance FROM bench_balances").fetchall()
        seen = {int(name.removeprefix("account-")): round(balance * 100) for name, balance in found}
        wrong = sum(seen.get(number) != cents for number, cents in enumerate(self.expected.tolist()))
        if wrong or len(seen) != len(self.expected):
            raise SystemExit(
                f"{wrong:,} of {len(self.expected):,} balances are wrong; {len(seen):,} are there"
            )


def _measure(bank: _Bank) -> None:
    events = bank.made.events
    print("| | s | events/s |")
    print("|---|---:|---:|")
    _line("the view over the archive, written nowhere", events, bank.viewed)
    _line("rebuild from the archive", events, bank.rebuilt)
    bank.check()
    bank.go_on()
    _line(f"rebuild from the snapshot and {TAIL:,} events behind it", TAIL, bank.rebuilt)
    bank.check()
    print("\nall balances are right")


def _line(what: str, events: int, work: Callable[[], None]) -> None:
    begun = time.perf_counter()
    work()
    took = time.perf_counter() - begun
    print(f"| {what} | {took:.1f} | {events / took:,.0f} |", flush=True)


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--events", type=int, default=EVENTS)
    main(given.parse_args().events)
