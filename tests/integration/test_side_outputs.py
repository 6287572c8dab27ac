"""A table with side outputs in topics: each batch once in each, wherever the process dies."""

from dataclasses import replace

import psycopg
import pytest
from pyspark.sql import functions as F
from tests.integration.shop import Suspect, make_sales
from tests.integration.test_flows import copying, pair, run_once, send  # noqa: F401
from tests.integration.test_sink_kafka import read

from penstock.errors import FlowError, LedgerError
from penstock.log import Broker, Topic
from penstock.pipeline import verify
from penstock.process.wire.messages import with_messages
from penstock.settings import reveal
from penstock.targets import KafkaSink, PostgresSink, PostgresTable, SinkOptions
from penstock.targets.side_outputs import SinkWithSideOutputs, _refuse_apart, target_rows
from penstock.testing.sink_contract import Crash, batch, crash_at


def rows_of(spark, topic, numbers):
    """Even numbers for the table, odd ones for the topic."""
    rows = spark.range(1).select(F.explode(F.lit(list(numbers)).cast("array<int>")).alias("id"))
    text = F.col("id").cast("string").cast("binary")
    headers = F.array().cast("array<struct<key:string,value:binary>>")
    message = F.struct(
        F.lit(topic).alias("topic"), text.alias("key"), text.alias("value"), headers.alias("headers")
    )
    return rows.withColumn("_message", F.when(F.col("id") % 2 == 1, message))


class Target:
    def __init__(self, spark, settings, unique):
        self.topic, self.table, self.id = f"side.{unique}", f"side_{unique}", f"sink-{unique}"
        self._spark, self._settings = spark, settings
        Broker(settings).ensure(self.topic, 1, {})

    def sink(self):
        schema = target_rows(self.rows(())).schema
        table = PostgresSink(PostgresTable(self.table), schema, SinkOptions(self._settings, self.id))
        return SinkWithSideOutputs(self.id, KafkaSink(SinkOptions(self._settings, self.id, lanes=1)), table)

    def rows(self, numbers):
        return rows_of(self._spark, self.topic, numbers)

    def holds(self):
        sent = sorted(int(message.value()) for message in read(self._settings, self.topic))
        with psycopg.connect(reveal(self._settings.postgres)) as database:
            kept = database.execute(f"select id from {self.table} order by id").fetchall()
        return sent, [number for (number,) in kept]


@pytest.mark.parametrize(
    "point", ["sink.side-outputs.written", "sink.postgres.merged", "sink.postgres.committed"]
)
def test_a_batch_that_dies_between_the_two_is_once_in_each(spark, settings, unique, monkeypatch, point):
    target = Target(spark, settings, unique)
    sink = target.sink()
    sink.open()
    assert sink.write(target.rows(range(4)), batch(0, 0, 10))
    with monkeypatch.context() as dying:
        crash_at(dying, point)
        with pytest.raises(Crash):
            sink.write(target.rows(range(4, 8)), batch(1, 10, 20))
    again = target.sink()
    assert len(again.open()) == 2
    again.write(target.rows(range(4, 8)), batch(1, 10, 20))
    assert not again.write(target.rows(range(4, 8)), batch(1, 10, 20))
    assert target.holds() == ([1, 3, 5, 7], [0, 2, 4, 6])
    again.close()


def test_ledgers_that_can_not_be_of_one_sink_are_refused():
    first, second, third = batch(0, 0, 10), batch(1, 10, 20), batch(2, 20, 30)
    for side, table in ((None, None), (None, third), (first, None), (second, second), (second, first)):
        _refuse_apart(side, table, "s")
    for side, table in ((second, None), (third, first), (first, second), (batch(0, 0, 10, "new"), second)):
        with pytest.raises(LedgerError, match="side outputs"):
            _refuse_apart(side, table, "s")


@pytest.mark.long
@pytest.mark.timeout(200)
def test_a_flow_writes_a_table_and_sends_the_rest_to_topics(settings, spark, pair, unique, tmp_path):  # noqa: F811
    place, (source, _) = replace(settings, data=tmp_path), pair
    suspects = Topic(f"suspects.{unique}", Suspect, key="customer", format="avro")
    table = PostgresTable(f"honest_{unique}")

    def split(rows, limit=500):
        return rows.withColumn("_side_output", F.when(F.col("amount") > limit, suspects.name)).drop("id")

    pipeline = copying(f"p{unique}", source, table, split, side_outputs=(suspects,))
    run_once(pipeline, place, spark)
    send(place, source, make_sales(100, seed=2, start=100))
    run_once(pipeline, place, spark)
    made = [*make_sales(100, seed=1), *make_sales(100, seed=2)]
    large = sum(sale.amount > 500 for sale in made)
    with psycopg.connect(reveal(place.postgres)) as database:
        kept = database.execute(f"select count(*), max(amount) from honest_{unique}").fetchone()
        columns = database.execute(f"select * from honest_{unique} limit 0").description
    assert (kept[0], kept[1] <= 500, len(read(place, suspects.name))) == (200 - large, True, large)
    assert [column.name for column in columns] == ["id", "customer", "amount", "at"]
    verification, _ = verify(pipeline, place, spark)
    assert (verification.ok, verification.found, verification.expected) == (True, 200, 200)
    with psycopg.connect(reveal(place.postgres)) as database:
        database.execute(f"delete from honest_{unique} where id = (select min(id) from honest_{unique})")
    assert verify(pipeline, place, spark)[0].missing == 1
    stray = copying(
        f"q{unique}", source, table, lambda rows: split(rows).drop("amount"), side_outputs=(suspects,)
    )
    with pytest.raises(FlowError, match="amount"):
        run_once(stray, place, spark)


def test_the_old_name_of_the_column_is_not_taken_for_a_column_of_the_table(spark):
    rows = spark.createDataFrame([("a", "late")], "id string, outlet string")
    with pytest.raises(FlowError, match="'outlet', as it was once called"):
        with_messages(rows, flow="shop.bill", side_outputs={}, schemas={})
