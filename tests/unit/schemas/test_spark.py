"""Spark reads what events are written as, into the columns that come from the class."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from uuid import UUID

import msgspec
from hypothesis import given, settings
from pyspark.sql import functions as F
from tests.event_samples import Order, orders

from penstock.schemas import JsonCodec, spark_schema

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def many_orders():
    """Gather hypothesis's examples, so that hundreds of cases cost one Spark job."""
    found = []

    @settings(max_examples=200, deadline=None, derandomize=True, database=None)
    @given(orders)
    def gather(order):
        found.append(order)

    gather()
    return found


def as_columns(value):
    """An event's value as it should come out of Spark, times as microseconds since 1970."""
    match value:
        case datetime():
            return (value - EPOCH) // timedelta(microseconds=1)
        case Enum():
            return value.value
        case UUID():
            return str(value)
        case dict():
            return {key: as_columns(each) for key, each in value.items()}
        case list():
            return [as_columns(each) for each in value]
        case bool() | int() | float() | str() | Decimal() | bytes() | date() | None:
            return value
    return as_columns(vars(value))


def test_spark_reads_every_field_as_it_was_written(spark):
    cases = many_orders()
    rows = [(number, JsonCodec(Order).encode(order).decode()) for number, order in enumerate(cases)]
    parsed = F.from_json("json", spark_schema(Order), {"mode": "FAILFAST"})
    read = spark.createDataFrame(rows, "number long, json string").select("number", parsed.alias("order"))
    times = F.struct(
        F.unix_micros("order.at").alias("at"),
        F.transform("order.reminded", F.unix_micros).alias("reminded"),
    )
    found = read.select(
        "number", F.col("order").dropFields("at", "reminded").alias("order"), times.alias("times")
    )
    answers = sorted(found.collect(), key=lambda row: row.number)
    assert len(answers) == len(cases)
    for order, row in zip(cases, answers, strict=True):
        expected = as_columns(order)
        answer = row.order.asDict(recursive=True) | row.times.asDict()
        answer["receipt"] = bytes(answer["receipt"])
        assert answer == expected


def test_the_schema_takes_events_as_rows(spark):
    cases = many_orders()[:50]
    rows = [msgspec.to_builtins(order, builtin_types=(bytes, date, Decimal)) for order in cases]
    for row, order in zip(rows, cases, strict=True):
        row |= {"at": EPOCH, "reminded": []}
        assert row["due"] == order.due
    frame = spark.createDataFrame(rows, spark_schema(Order))
    assert {row.id for row in frame.collect()} == {order.id for order in cases}
