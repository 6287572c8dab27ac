"""Fraud judged in real time, and by a batch every N seconds: what passes before the block, and the cost."""

import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pyspark.sql import DataFrame, SparkSession

from bench.cpu import measured
from penstock.apps.fraud.events import (
    TOPICS,
    Model,
    Profile,
    Transaction,
    blocked,
    models,
    profiles,
    transactions,
)
from penstock.apps.fraud.pipeline import suspicious
from penstock.apps.fraud.plan import QUICK
from penstock.apps.fraud.thefts import MODEL, START, Block, Passed, Thefts
from penstock.local import running
from penstock.log import Broker, Producer, apply
from penstock.process import read, session
from penstock.schemas import spark_schema
from penstock.settings import Settings
from penstock.testing import Driver, Sent
from penstock.testing.topic_rows import TopicRows

EVERY = {"1 s": 1, "10 s": 10, "1 min": 60, "10 min": 600, "1 h": 3600}
REAL_TIME = 0.1  # seconds to the block: the p99 of alerts at 1,000 transactions a second
LOOK_BACK = 600.0  # seconds that a rule looks back: a batch has to read them, too
RATE = 1_000  # transactions a second that the costs are computed for
SIZES = (60_000, 300_000)  # transactions of a batch that is measured
WARM_UP, LIVE = 75.0, 45.0  # seconds at the rate, before and while a flow is measured
CARDS = 20_000
MODES = {"real time": "realtime", "micro-batches": "stream"}


@dataclass(frozen=True)
class Batch:
    """What a batch costs, in CPU seconds and seconds: something for itself, and something for each event."""

    fixed: float
    each: float

    def cost(self, events: float) -> float:
        return self.fixed + self.each * events

    def per_million(self, every: float) -> float:
        """CPU seconds for a million transactions, where each batch reads what its rules look back on."""
        runs = 1_000_000 / (RATE * every)
        return runs * self.cost(RATE * (every + LOOK_BACK))


def main() -> None:
    with running(services=("kafka",)) as settings:
        apply([*TOPICS, profiles], Broker(settings))
        thefts = Thefts()
        log = thefts.transactions()
        with Producer(settings) as producer:
            producer.send_all(transactions, log)
        spark = session(settings, name="fraud-batch", partitions=2, shuffle=2)
        alerts = first_alerts(spark, settings, thefts)
        cpu, seconds = batch_costs(spark, settings, thefts)
        spark.stop()
    live = {name: live_cost(mode, thefts) for name, mode in MODES.items()}
    show(alerts, log, cpu, seconds, live)


def first_alerts(spark: SparkSession, settings: Settings, thefts: Thefts) -> dict[str, float]:
    """Replay the log through the flow; return the second of each card's first alert."""
    found = judged(spark, read(spark, transactions, settings), thefts)
    rows = found.groupBy("card").agg({"at": "min"}).collect()
    return {card: at.replace(tzinfo=UTC).timestamp() - START.timestamp() for card, at in rows}


def judged(spark: SparkSession, acts: DataFrame, thefts: Thefts) -> DataFrame:
    """The flow as a batch."""
    rows = TopicRows(profiles)
    known = [rows.row(sent) for sent in _written(thefts)]
    profile = spark.createDataFrame(known, rows.schema)
    block = spark.createDataFrame([], TopicRows(blocked).schema)
    model = spark.createDataFrame([asdict(MODEL)], spark_schema(Model))
    return suspicious(acts, profile, block, model)


def batch_costs(spark: SparkSession, settings: Settings, thefts: Thefts) -> tuple[Batch, Batch]:
    """Measure batches of two sizes, after one that warms up: CPU seconds, and seconds on the clock."""
    acts = read(spark, transactions, settings)
    used, took = [], []
    for size in (SIZES[0], *SIZES):
        began = time.monotonic()
        with measured() as cpu:
            judged(spark, acts.limit(size), thefts).count()
        used.append(cpu.seconds)
        took.append(time.monotonic() - began)
    return _line(used[1:]), _line(took[1:])


def _line(costs: Sequence[float]) -> Batch:
    each = max(0.0, (costs[1] - costs[0]) / (SIZES[1] - SIZES[0]))
    return Batch(max(0.0, costs[0] - each * SIZES[0]), each)


def live_cost(mode: str, thefts: Thefts) -> float:
    """CPU seconds of the flow for a million transactions, at the rate, once it is warm."""
    with running(services=("kafka",)) as settings:
        apply([*TOPICS, profiles], Broker(settings))
        place = replace(settings, spark=QUICK)
        with Producer(settings) as producer:
            producer.send(models, MODEL)
            for each in thefts.profiles():
                producer.send_bytes(profiles.name, each.card.encode(), _captured(each))
        driver = Driver(
            "fraud", "penstock.apps.fraud.pipeline", place, options=("--flow", "suspicious", "--mode", mode)
        )
        driver.start()
        try:
            _send(settings, WARM_UP)
            with measured(driver.pid) as cpu:
                sent = _send(settings, LIVE)
        finally:
            driver.kill()
    return 1_000_000 * cpu.seconds / sent


def _send(settings: Settings, seconds: float) -> int:
    """Honest payments at the rate; return how many."""
    began, sent = time.monotonic(), 0
    with Producer(settings, linger="10 ms") as producer:
        while (passed := time.monotonic() - began) < seconds:
            for number in range(sent, int(RATE * passed)):
                card, at = f"card-{number % CARDS:05d}", datetime.now(UTC)
                paid = Transaction(card, card, "payment", Decimal(20), 48.2, 16.4, at, id=f"{at}/{number}")
                producer.send(transactions, paid)
            sent = int(RATE * passed)
            time.sleep(0.002)
    return sent


def _written(thefts: Thefts) -> list[Sent]:
    return [Sent(each, written=START - timedelta(days=1)) for each in thefts.profiles()]


def _captured(profile: Profile) -> bytes:
    row = {"card": profile.card, "home_lat": 48.2, "home_lon": 16.4, "usual": profile.usual}
    source = {"ts_us": 0, "txId": 1, "lsn": 1, "snapshot": "true"}
    return json.dumps({"before": None, "after": row, "source": source, "op": "r"}).encode()


def show(
    alerts: dict[str, float], log: list[Transaction], cpu: Batch, seconds: Batch, live: dict[str, float]
) -> None:
    payments: dict[str, list[tuple[float, Decimal]]] = defaultdict(list)
    for each in log:
        if each.card in alerts:
            payments[each.card].append(((each.at - START).total_seconds(), each.amount))
    print(f"{len(log):,} transactions of 3 hours, {len(alerts):,} cards stolen and found\n")
    print("| judged | payments that passed | money | CPU seconds for a million transactions |")
    print("|---|---:|---:|---:|")
    now = Passed.before_block(alerts, payments, Block(REAL_TIME))
    _row("in real time", now, live["real time"])
    for name, every in EVERY.items():
        takes = seconds.cost(RATE * (every + LOOK_BACK))
        found = Passed.before_block(alerts, payments, Block(takes, every))
        late = "" if takes < every else ", if only it took no longer"
        _row(f"every {name}{late}", found, cpu.per_million(every))
    print(f"\nin micro-batches, with state: {live['micro-batches']:,.0f} CPU seconds for a million")
    print(f"a batch: {cpu.fixed:.1f} CPU seconds and {1e6 * cpu.each:.1f} µs for each event that it reads")


def _row(judged: str, passed: Passed, cpu: float) -> None:
    print(f"| {judged} | {passed.payments:,} | {passed.money:,.2f} | {cpu:,.0f} |")
