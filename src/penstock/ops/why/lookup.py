"""The result that is asked about, looked up in its topic or its table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NullType, StructField, StructType

from penstock.errors import FlowError
from penstock.log import Topic
from penstock.ops.why.answer import Made, Place
from penstock.pipeline.flow import Flow
from penstock.process.columns.names import CHANGE, DELETED, SOURCE
from penstock.process.columns.naming import quoted
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.wire.known_schemas import known_schemas
from penstock.settings import Settings
from penstock.targets import Inspection
from penstock.testing.recomputed import plain

_OWN = (SOURCE, DELETED, CHANGE, SIDE_OUTPUT)


@dataclass(frozen=True)
class Looked:
    """A result, and what its record says of it; a row of a table says nothing."""

    values: Mapping[str, Any]
    place: Place | None = None
    written: datetime | None = None
    made: Made | None = None
    deleted: bool = False


def in_topic(
    rows: DataFrame,
    topic: Topic[Any],
    key: Sequence[str],
    record: tuple[int, int] | None,
    where: str | None,
) -> Looked:
    """Return the last event of a topic that is meant."""
    chosen = _chosen(rows, (topic.key,) if topic.key else (), key, where, topic.name)
    if record is not None:
        at = f"{SOURCE}.partition = {record[0]} and {SOURCE}.offset = {record[1]}"
        chosen = chosen.where(at)
    last = [F.col(f"{SOURCE}.{name}").desc() for name in ("written", "offset", "partition")]
    values = _first(chosen.orderBy(*last), topic.name)
    source = values.pop(SOURCE)
    return Looked(
        {name: value for name, value in values.items() if name not in _OWN},
        Place(source["topic"], source["partition"], source["offset"]),
        source["written"],
        Made.of_headers(source["headers"]),
        bool(values.get(DELETED)),
    )


def in_target(
    settings: Settings,
    label: str,
    flow: Flow,
    results: DataFrame,
    key: Sequence[str],
    where: str | None,
) -> Looked:
    """Return the row of a table that is meant, of several the one whose key comes last."""
    inspection = Inspection(label, settings, lambda topic: known_schemas(topic, None), lambda: results)
    name = type(flow.writes).__name__
    rows = flow.target.contents(results.sparkSession, _kept(flow, results), inspection)
    if rows is None:
        raise FlowError(f"{name} does not say what it holds", hint="ask about a topic that flows write")
    keys = flow.target.upsert_key or tuple(getattr(flow.writes, "keys", ()))
    chosen = _chosen(rows, keys, key, where, name)
    return Looked(_first(chosen.orderBy(*(quoted(each).desc() for each in keys)), name))


def _kept(flow: Flow, results: DataFrame) -> StructType:
    """The columns of the results that the target has."""
    names = flow.target.columns or [name for name in results.columns if name not in _OWN]
    own = [results.schema[name] for name in names if name in results.columns]
    return StructType([StructField(each.name, each.dataType) for each in own if not _is_void(each)])


def _is_void(field: StructField) -> bool:
    return isinstance(field.dataType, NullType)


def _chosen(
    rows: DataFrame, keys: Sequence[str], given: Sequence[str], where: str | None, target: str
) -> DataFrame:
    """Rows with the values of a key, and under a condition."""
    if len(given) > len(keys):
        known = f"its key is {', '.join(keys)}" if keys else "it has no key: choose a result with --where"
        raise FlowError(f"{target!r} has {len(keys)} key columns, and {len(given)} are given", hint=known)
    for name, text in zip(keys, given, strict=False):
        rows = rows.where(quoted(name) == F.lit(text).try_cast(rows.schema[name].dataType))
    if where is None:
        return rows
    try:
        return rows.where(where)
    except (AnalysisException, ParseException) as error:
        said = str(error.getMessage()).splitlines()[0]
        raise FlowError(f"the condition {where!r} can't be used on {target!r}: {said}") from error


def _first(rows: DataFrame, target: str) -> dict[str, Any]:
    found = rows.limit(1).collect()
    if not found:
        raise FlowError(f"{target!r} holds no such result", hint="see its key; times are in UTC")
    return plain(found[0])
