"""A feed: a flow's function sees the rows that it would see of a real topic."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from uuid import UUID

import pytest
from pyspark.sql import functions as F
from tests.event_samples import Order
from tests.integration.test_process_source import many_orders

from penstock.errors import FlowError, TopicError
from penstock.events import Event
from penstock.log import Broker, Producer, Table, Topic, apply
from penstock.process import joins, windows
from penstock.process.windows import Watermark, agg
from penstock.process.wire.events import typed
from penstock.process.wire.known_schemas import KnownSchemas
from penstock.process.wire.source import kafka_rows
from penstock.testing import Feed, Sent, Tombstone

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Status(Enum):
    OPEN = "open"
    COMPLETED = "completed"


@dataclass(frozen=True)
class Trip(Event):
    rider: UUID
    status: Status
    at: datetime


trips = Topic("trips", Trip, key="rider")
state = Table("state", Trip, key="rider")
ADA = UUID(int=1)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def trip(seconds, status=Status.OPEN):
    return Trip(ADA, status, at(seconds), id=f"t{seconds}")


def without_written(rows):
    """When an event was written is the broker's to say."""
    return rows.withColumn("_source", F.col("_source").dropFields("written"))


@pytest.mark.parametrize("kind", [Topic, Table])
def test_its_rows_are_those_of_a_real_topic(spark, settings, unique, kind):
    topic = kind(f"feed.{unique}", Order, key="id")
    made = [replace(order, id=f"{number}") for number, order in enumerate(many_orders()[:40])]
    headers = [((("n", b"1"),) if number % 2 else ()) for number in range(len(made))]
    gone = [made[0].id, made[1].id] if kind is Table else []
    apply([topic], Broker(settings))
    with Producer(settings) as producer:
        for order, each in zip(made, headers, strict=True):
            producer.send(topic, order, headers=list(each))
        for key in gone:
            producer.delete(topic, key)
    rows = kafka_rows(spark, settings, [topic.name], streaming=False).orderBy("offset")
    real = without_written(typed(rows, topic, KnownSchemas()))
    sent = [Sent(order, headers=each) for order, each in zip(made, headers, strict=True)]
    seen = []
    with Feed(spark, lambda rows: seen.append(rows) or without_written(rows), rows=topic) as feed:
        found = feed.send(rows=[*sent, *(Tombstone(key) for key in gone)])
    assert seen[0].schema.simpleString() == typed(rows, topic, KnownSchemas()).schema.simpleString()
    assert all(field.nullable for field in seen[0].schema)
    assert [row.asDict(recursive=True) for row in found] == [
        row.asDict(recursive=True) for row in real.collect()
    ]


def test_an_enum_is_its_value_and_a_deletion_can_be_sent(spark):
    def ended(state):
        return state.where("status = 'completed' or _deleted").select("rider", "status", "_deleted")

    with Feed(spark, ended, state=state) as feed:
        assert feed.send(state=[trip(0), trip(1, Status.COMPLETED), Tombstone(ADA)]) == [
            (str(ADA), "completed", False),
            (str(ADA), None, True),
        ]


@pytest.mark.long
def test_a_row_that_was_deleted_is_there_no_more_as_of_later(spark):
    def then(trips, state):
        known = joins.as_of(state, on="rider", time="at", history="1 hour", watermark="1 second", buckets=1)
        return trips.transform(known).select(F.unix_seconds("at").alias("at"), "row.status")

    with Feed(spark, then, trips=trips, state=state) as feed:
        feed.send(state=[trip(0), Tombstone(ADA, written=at(10))], trips=[trip(5), trip(15)])
        feed.advance(at(60))
        statuses = {row.at - int(NOON.timestamp()): row.status for row in feed.results}
    assert statuses == {5: "open", 15: None}


def test_an_event_dated_ahead_of_when_it_was_written_does_not_move_the_watermark(spark):
    def by_minute(trips):
        mark = Watermark("1 second", future="1 minute")
        minutes = windows.tumbling("1 minute", time="at", by="rider", watermark=mark, buckets=1)
        return trips.transform(minutes.agg(trips=agg.count()))

    with Feed(spark, by_minute, trips=trips) as feed:
        feed.send(trips=[trip(0), Sent(trip(100_000), written=at(1))])
        assert feed.results == []
        feed.send(trips=[trip(200)])
        assert [row.trips for row in feed.results] == [1]


def test_what_a_topic_does_not_take_a_feed_does_not_take(spark):
    with Feed(spark, lambda trips: trips, trips=trips) as feed:
        with pytest.raises(TopicError, match="is no table"):
            feed.send(trips=[Tombstone(ADA)])
        with pytest.raises(TopicError, match="takes Trip, got a dict"):
            feed.send(trips=[{"rider": "x"}])
    with Feed(spark, lambda state: state, state=state) as feed, pytest.raises(FlowError, match="written="):
        feed.send(state=[Tombstone(ADA)])
