"""Bugs, one in each flow: what sinks, sources and flows get wrong in the field. The harness finds them."""

import sys
import threading
import time
from dataclasses import replace

import confluent_kafka
from pyspark import cloudpickle
from pyspark.sql import functions as F
from tests.integration.shop import Receipt, Sale, suspects

import penstock.pipeline.plan as plan
import penstock.targets.kafka.target as kafka_target
import penstock.targets.postgres.target as postgres_target
from penstock.log import Topic
from penstock.log.ledger import Entry
from penstock.pipeline import Pipeline
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.malformed import Judge
from penstock.targets.kafka.lane import KafkaLanes, messages
from penstock.targets.kafka.sink import KafkaSink
from penstock.targets.lanes import LaneWork
from penstock.targets.postgres import PostgresSink, PostgresTable
from penstock.targets.postgres import ledger as postgres_ledger

sales = Topic("planted.sales", Sale, key="customer", partitions=2)
table = PostgresTable("planted_sales", key="id", write="upsert")
planted = Pipeline("planted")
DOUBT = "if(amount > 500, 'shop.suspects', null)"
CHANCE = "cast(amount * rand() as decimal(12,2))"


class MarkerSkipped(LaneWork):
    """The rows are committed, the ledger does not have them."""

    def write_due(self, lane, rows):
        lane.write(rows, lane.entry)


class CommitFirst(LaneWork):
    """The ledger is written before the rows."""

    def write_due(self, lane, rows):
        replace(self, guarantee="at-most-once").write_due(lane, rows)


class NumberOnly(LaneWork):
    """A batch is known by its number alone."""

    def write(self, number, rows):
        lane = self.lanes.open(number)
        if lane.entry.batch is None or self.batch.number > lane.entry.batch.number:
            lane.write(rows, Entry(self.epoch, self.batch))


class NoTransaction(LaneWork):
    """The rows are sent by themselves, only the ledger is written in a transaction."""

    def write_due(self, lane, rows):
        producer = confluent_kafka.Producer(self.lanes.kafka)
        for topic, key, value, headers in messages(rows):
            producer.produce(topic, value, key, headers=headers)
        producer.flush(30)
        lane.write((), Entry(self.epoch, self.batch))


class UsingWork(KafkaSink):
    works = {  # noqa: RUF012
        "marker_skipped": MarkerSkipped,
        "commit_first": CommitFirst,
        "number_only": NumberOnly,
        "no_transaction": NoTransaction,
    }

    def _work(self, batch, names):
        plain = super()._work(batch, names)
        return self.works[self.id.split(".")[1]](**vars(plain))


class SlowLane(LaneWork):
    def write(self, number, rows):
        time.sleep(60 * number)
        return super().write(number, rows)


class ByChance(KafkaLanes):
    def spread(self, rows, count):
        return rows.repartition(count, F.rand()).select("topic", "key", "value", "headers")


class RandomSpread(KafkaSink):
    """A repeated batch brings its rows to other lanes; of the first try one lane was written."""

    def __init__(self, options):
        super().__init__(options)
        self._lanes = ByChance(**vars(self._lanes))

    def _work(self, batch, names):
        plain = super()._work(batch, names)
        return SlowLane(**vars(plain)) if all(entry.batch is None for entry in self._entries) else plain


class Later(KafkaSink):
    """The batch is taken in some time after it was said to be."""

    def write(self, rows, batch, before_commit):
        def late():
            time.sleep(600)
            KafkaSink.write(self, rows, batch)

        threading.Thread(target=late, daemon=True).start()


class LedgerFirst(PostgresSink):
    """The table's ledger is written before the merge."""

    def _begin(self, batch):
        due = super()._begin(batch)
        with self._connected("write the ledger") as connection:
            postgres_ledger.write_down(connection, self.id, Entry(self.epoch, batch))
        return due

    def _commit(self, staged, lanes, batch):
        with self._connected("merge") as connection, connection.transaction():
            self._merge.run(connection, staged, lanes)


SINKS = {"random_spread": RandomSpread, "later": Later} | dict.fromkeys(UsingWork.works, UsingWork)


def kafka_sink(options):
    return SINKS.get(options.id.split(".")[1], KafkaSink)(options)


def uncommitted(spark, settings, topics, *, options=None, **more):
    """A source that takes in what was never committed."""
    rows = read_rows(spark, settings, topics, options=options, **more)
    if not (options or {}).get("planted") or not rows.isStreaming:
        return rows
    servers = settings.client()["bootstrap.servers"]
    asked = {"kafka.bootstrap.servers": servers, "subscribe": topics[0], "startingOffsets": "earliest"}
    reader = spark.readStream.format("kafka").options(**asked)
    return reader.option("includeHeaders", "true").load()


def forgetful(self, *given):
    """Nobody looks after malformed records."""
    return 0


def half(self, flow, label, results):
    """Side outputs are lost on the way."""
    rows = make_rows(self, flow, label, results)
    return (
        rows.where(F.col("topic") != suspects.name) if flow.mode == "stream" and flow.side_outputs else rows
    )


def careless(self, entries):
    """Without the ledger's offset ranges, it can't be compared with the checkpoint."""
    if "number_only" not in self.path and "later" not in self.path:
        refuse_misfit(self, entries)


def plant():
    """Put the bugs in; only the process that runs the flows does this."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    kafka_target.KafkaSink, postgres_target.PostgresSink = kafka_sink, LedgerFirst
    plan.kafka_rows = uncommitted
    Judge.judge, plan.Planner.as_written = forgetful, half
    Checkpoint.refuse_misfit = careless


read_rows, make_rows = plan.kafka_rows, plan.Planner.as_written
refuse_misfit = Checkpoint.refuse_misfit


def _flow(name, change=lambda sales: sales, **options):
    """A flow under a name of its own, with its own topic of results."""

    def flow(sales):
        taxed = change(sales).withColumn("tax", F.expr("cast(amount / 10 as decimal(12,2))"))
        return taxed.drop("id") if "_source" in taxed.columns else taxed

    flow.__name__ = name
    target = Topic(f"planted.{name}", Receipt, key="customer")
    planted.flow(**{"reads": {"sales": sales}, "writes": target} | options)(flow)


_flow("healthy")
for _name in SINKS:
    _flow(_name)
_flow("ledger_first", writes=table)
_flow("uncommitted", options={"planted": "uncommitted"})
_flow(
    "side_output_lost",
    lambda sales: sales.withColumn("_side_output", F.expr(DOUBT)),
    side_outputs=(suspects,),
)
_flow("by_chance", lambda sales: sales.withColumn("amount", F.expr(CHANCE)))

if sys.argv[1:2] == ["run"]:
    plant()
