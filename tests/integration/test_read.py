"""A topic as a DataFrame of anybody's own job: typed, and no malformed message is left out in silence."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql.types import LongType, StringType, TimestampType

from penstock.events import Event
from penstock.log import Broker, Producer, Table, Topic, apply
from penstock.process import read
from penstock.registry import Registry

AT = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sale(Event):
    shop: str
    pieces: int
    at: datetime


def written(settings, topic, *, malformed=()):
    """Write three sales to a topic, and values that are none."""
    apply([topic], Broker(settings))
    with Registry(settings) as registry, Producer(settings, schemas=registry) as producer:
        for pieces in (1, 2, 3):
            producer.send(topic, Sale("north", pieces, AT, id=f"sale {pieces}"))
        for value in malformed:
            producer.send_bytes(topic.name, b"north", value)


@pytest.mark.parametrize("format", ["json", "avro", "json-schema"])
def test_a_topic_of_each_format_is_read_as_typed_columns(spark, settings, unique, format):
    topic = Topic(f"sales.{unique}", Sale, key="shop", format=format, partitions=1)
    written(settings, topic)
    sales = read(spark, topic, settings)
    kinds = {field.name: field.dataType for field in sales.schema}
    assert (kinds["shop"], kinds["pieces"], kinds["at"]) == (StringType(), LongType(), TimestampType())
    assert sales.selectExpr("sum(pieces)", "max(_source.offset)").first()[:] == (6, 2)
    assert (
        read(spark, topic, settings, options={"startingOffsets": f'{{"{topic.name}": {{"0": 2}}}}'}).count()
        == 1
    )


def test_a_malformed_message_stops_a_query_that_does_not_count(spark, settings, unique):
    topic = Topic(f"sales.{unique}", Sale, key="shop", partitions=1)
    written(settings, topic, malformed=[b"{}"])
    for asked in (lambda sales: sales.count(), lambda sales: sales.select("shop").collect()):
        with pytest.raises(
            PySparkException, match=f"DataError: the message at {topic.name}/0/3 can't be decoded: field"
        ):
            asked(read(spark, topic, settings))


def test_malformed_messages_that_are_left_out_are_counted(spark, settings, unique, tmp_path):
    topic = Topic(f"sales.{unique}", Sale, key="shop", format="avro", partitions=1)
    written(settings, topic, malformed=[b"{}", b""])
    counted = Observation()
    assert read(spark, topic, settings, counted=counted).count() == 3
    assert counted.get == {"malformed": 2}
    sales = read(spark, topic, settings, streaming=True, counted="sales")
    query = sales.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).start()
    query.processAllAvailable()
    query.stop()
    found = [
        each["observedMetrics"]["sales"]["malformed"] for each in query.recentProgress if each["numInputRows"]
    ]
    assert (sales.isStreaming, sum(found)) == (True, 2)


def test_a_table_is_read_with_its_deletions(spark, settings, unique):
    table = Table(f"shops.{unique}", Sale, key="shop", partitions=1)
    apply([table], Broker(settings))
    with Producer(settings) as producer:
        producer.send(table, Sale("north", 1, AT))
        producer.send_bytes(table.name, b"north", None)
    rows = read(spark, table, settings).orderBy("_source.offset").collect()
    assert [(row.shop, row.pieces, row["_deleted"]) for row in rows] == [
        ("north", 1, False),
        ("north", None, True),
    ]
