"""Five keyed rules in real time: how long an answer takes, and how long the pause at a checkpoint is.

An answer's time is from the event's making to its result's being read. The same rules run with the settings
that are Spark's defaults, in the same run.
"""

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby, pairwise
from multiprocessing.synchronize import Event as Signal
from pathlib import Path
from random import Random

from pyspark.sql import DataFrame, SparkSession

from penstock.durations import duration
from penstock.events import Event
from penstock.local import running
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.pipeline import Pipeline, Runner
from penstock.process import keyed, session
from penstock.settings import Settings

RATE, CARDS = 1_000, 20_000  # events a second
SLOW = 20  # seconds with a tenth of the events, in which the flow starts
WARM = 20  # seconds that are not counted
BACKLOG = 0.5  # seconds; an answer that took longer waited for the flow to start
LINGER = "10 ms"  # the batching delay of an event
PAUSE = 0.03  # seconds without an answer that are called a pause
# What the session and the runner choose otherwise.
DEFAULTS = {
    "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": "50",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "true",
    "spark.sql.codegen.cache.maxEntries": "100",
    "spark.driver.extraJavaOptions": "-XX:+DontCompileHugeMethods",
}


@dataclass(frozen=True)
class Payment(Event):
    card: str
    shop: str
    amount: float
    lat: float
    lon: float
    at: datetime


@dataclass(frozen=True)
class Verdict(Event):
    card: str
    rules: list[bool]
    at: datetime


@dataclass(frozen=True)
class Case:
    """How often state is saved, for how long it runs, and whether with Spark's defaults."""

    checkpoint: str
    seconds: int
    defaults: bool = False

    @property
    def name(self) -> str:
        return f"rules-{self.checkpoint.replace(' ', '')}{'-defaults' if self.defaults else ''}"


# A Java process that has planned the same flow thirty times plans it in a fifth of the time.
WARMING = Case("5 seconds", 90)
CASES = [
    Case("2 minutes", 250, defaults=True),
    Case("2 minutes", 600),
    Case("10 seconds", 60),
    Case("1 minute", 130),
    Case("5 minutes", 320),
]


def pipeline(case: Case) -> tuple[Pipeline, Topic[Payment], Topic[Verdict]]:
    payments = Topic(f"{case.name}.payments", Payment, key="card")
    verdicts = Topic(f"{case.name}.verdicts", Verdict, key="card")
    made = Pipeline(case.name)

    @made.flow(
        reads={"payments": payments}, writes=verdicts, mode="realtime", checkpoint_interval=case.checkpoint
    )
    def judged(payments: DataFrame) -> DataFrame:
        return five_rules(payments)

    return made, payments, verdicts


def five_rules(payments: DataFrame) -> DataFrame:
    """Every event gets its verdict, so that every event is measured."""
    kept = ["shop", "amount", "lat", "lon"]
    recent = keyed.recent(by="card", time="at", within="10 minutes", at_most=32, keeps=kept)
    rules = [
        keyed.count(within="1 minute") > 5,
        keyed.sum("amount") > 5000,
        keyed.speed_kmh("lat", "lon") > 500,
        keyed.distinct("shop", within="5 minutes") > 4,
        keyed.since(lambda other: other.amount < 1) < 10,
    ]
    named = [rule.alias(f"rule{number}") for number, rule in enumerate(rules)]
    judged = payments.transform(recent).select("event.id", "event.card", "event.at", *named)
    fired = ", ".join(f"coalesce(rule{number}, false)" for number in range(len(rules)))
    return judged.selectExpr("id", "card", "at", f"array({fired}) as rules")


def main(cases: Sequence[Case] = CASES) -> None:
    print(f"{RATE:,} events a second of {CARDS:,} cards, from Kafka to Kafka\n")
    print(
        "| checkpoint every | settings | answers | p50 | p99 | p99.9 | longest | pauses | median | longest |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    spawn = multiprocessing.get_context("spawn")
    with running(services=("kafka",)) as settings, tempfile.TemporaryDirectory() as folder:
        for defaults, own in groupby(cases, lambda case: case.defaults):
            environment = replace(settings, data=Path(folder) / str(defaults)).environment()
            side = spawn.Process(target=measure_all, args=(list(own), environment))
            side.start()
            side.join()
            if side.exitcode:
                sys.exit(side.exitcode)


def measure_all(cases: list[Case], environment: dict[str, str]) -> None:
    """Measure one side in a Java of its own, warm before the first case."""
    settings, defaults = Settings.load(environ=environment), cases[0].defaults
    if defaults:
        settings = replace(settings, spark={**settings.spark, **DEFAULTS})
    spark = session(settings, name="rules", partitions=8)
    measure(replace(WARMING, defaults=defaults), settings, spark)
    for case in cases:
        print(
            f"| {case.checkpoint} | {_settings(case)} | {described(measure(case, settings, spark))} |",
            flush=True,
        )
    spark.stop()


def _settings(case: Case) -> str:
    return "Spark's defaults" if case.defaults else "Penstock's"


def described(answers: list[tuple[float, float]]) -> str:
    taken = sorted(took for _, took in answers)
    at = [taken[int(len(taken) * part)] for part in (0.5, 0.99, 0.999)]
    gaps = sorted(pauses(sorted(when for when, _ in answers)))
    parts = [f"{len(taken):,}", *(f"{1000 * value:,.0f} ms" for value in (*at, taken[-1]))]
    longest = [statistics.median(gaps), gaps[-1]] if gaps else [0.0, 0.0]
    return " | ".join([*parts, f"{len(gaps)}", *(f"{1000 * gap:,.0f} ms" for gap in longest)])


def pauses(heard: list[float]) -> Iterator[float]:
    for before, after in pairwise(heard):
        if after - before > PAUSE:
            yield after - before


def measure(case: Case, settings: Settings, spark: SparkSession) -> list[tuple[float, float]]:
    """Return when each answer came and how long it took, once the flow is warm."""
    made, payments, verdicts = pipeline(case)
    apply([payments, verdicts], Broker(settings))
    spawn = multiprocessing.get_context("spawn")
    over = spawn.Event()
    feeder = spawn.Process(target=feed, args=(case, settings.environment(), over))
    with Runner(made, settings, spark=spark):
        feeder.start()
        try:
            return listen(verdicts, settings, case.seconds)
        finally:
            over.set()
            feeder.join()


def due(seconds: float) -> int:
    """How many events are to be sent by then: few while the flow starts, so that it has no backlog."""
    return int(RATE * (seconds / 10 if seconds < SLOW else seconds - 0.9 * SLOW))


def feed(case: Case, environment: dict[str, str], over: Signal) -> None:
    _, payments, _ = pipeline(case)
    settings = Settings.load(environ=environment)
    random, began, sent = Random(1), time.monotonic(), 0
    with Producer(settings, linger=LINGER) as producer:
        while not over.is_set():
            for _ in range(due(time.monotonic() - began) - sent):
                card, shop = f"card-{random.randrange(CARDS)}", f"shop-{random.randrange(50)}"
                place = 48 + random.random(), 16 + random.random()
                amount = random.lognormvariate(3, 1)
                producer.send(payments, Payment(card, shop, amount, *place, datetime.now(UTC)))
                sent += 1
            time.sleep(0.001)


def listen(verdicts: Topic[Verdict], settings: Settings, seconds: int) -> list[tuple[float, float]]:
    """Hear answers; those of the backlog and of the first seconds after it are not counted."""
    answers: list[tuple[float, float]] = []
    caught_up: float | None = None
    with Consumer(verdicts, settings) as consumer:
        for record in consumer.records(idle=duration("2 minutes")):
            now = time.time()
            took = now - record.event.at.timestamp()
            caught_up = now if caught_up is None and took < BACKLOG else caught_up
            if caught_up is not None and now - caught_up > WARM:
                answers.append((now, took))
            if caught_up is not None and now - caught_up > WARM + seconds:
                break
    return answers
