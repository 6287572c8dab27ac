"""A flow's function over a handful of rows, as a replay computes it, and rows that can be compared."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from penstock.log import Topic
from penstock.pipeline import Flow
from penstock.schemas import spark_schema
from penstock.testing.topic_rows import TopicRows

Values = dict[str, Any]
_PRECISION = 1e-9  # of sums of floats, whose order is not given


def recomputed(
    spark: SparkSession,
    flow: Flow,
    events: Mapping[str, Sequence[Mapping[str, Any]]],
    looked_up: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> list[Values]:
    """Return what a flow's function makes of rows, given for each of its arguments, `_source` included."""
    given = {name: topic_frame(spark, topic, events.get(name, ())) for name, topic in flow.reads.items()}
    for name, table in flow.looks_up.items():
        schema = StructType(spark_schema(table.event).fields).toNullable()
        given[name] = _frame(spark, schema, (looked_up or {}).get(name, ()))
    return [plain(row) for row in flow.function(**given).collect()]


def topic_frame(spark: SparkSession, topic: Topic[Any], rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return rows as flows see those of a topic; a column that a row lacks is null."""
    return _frame(spark, TopicRows(topic).schema, rows)


def holds(rows: Sequence[Mapping[str, Any]], expected: Mapping[str, Any]) -> bool:
    """Return whether a row has all values that are expected.

    >>> holds([{"card": "c1", "spent": 0.1 + 0.2}], {"spent": 0.3})
    True
    """
    return any(all(alike(row.get(name), value) for name, value in expected.items()) for row in rows)


def alike(one: Any, other: Any) -> bool:
    """Return whether two values are the same, but for the last digits of a sum of floats.

    >>> alike([1, {"a": 0.1 + 0.2}], [1, {"a": 0.3}]), alike(1, None)
    (True, False)
    """
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=_PRECISION) or (one != one and other != other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def plain(row: Row) -> Values:
    """Return a row as a dict, with its times in UTC."""
    return {name: _plain(value) for name, value in row.asDict(recursive=True).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


def _frame(spark: SparkSession, schema: StructType, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(row.get(name) for name in schema.names) for row in rows], schema)
