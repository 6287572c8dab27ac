"""States of all streams by an aggregate's own `evolve`, on Spark: as it is, or as it should have been."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructType

from penstock.schemas import spark_schema
from penstock.sourcing.aggregate import Aggregate
from penstock.sourcing.recorded import Recorded

_NATIVE = (bytes, datetime, date, Decimal)
_TAKEN = ("category", "stream", "version", "type", "schema_version", "data")


def folded(aggregate: Aggregate[Any]) -> Callable[[DataFrame], DataFrame]:
    """Return the state of each stream: `stream`, `version`, and `state`, a struct of the state's fields.

    It runs `evolve` in Python for each event: right for questions and corrections. A view of totals answers
    inside Spark.
    """
    schema = StructType().add("stream", StringType()).add("version", LongType())
    schema = schema.add("state", spark_schema(type(aggregate.initial)))
    arrow = to_arrow_schema(schema)

    def fold(table: pa.Table) -> pa.Table:
        rows = sorted(table.to_pylist(), key=lambda row: row["version"])
        state = aggregate.initial
        for row in rows:
            state = aggregate.fold(aggregate.types.events_of(_record(row)), state)
        plain = msgspec.to_builtins(state, builtin_types=_NATIVE)
        last = {"stream": rows[-1]["stream"], "version": rows[-1]["version"], "state": plain}
        return pa.Table.from_pylist([last], schema=arrow)

    return lambda records: records.select(*_TAKEN).groupBy("stream").applyInArrow(fold, schema)


def what_if(records: DataFrame, aggregate: Aggregate[Any], corrected: Aggregate[Any]) -> DataFrame:
    """Replay with a corrected aggregate, and return the streams whose state would be another.

    A row has `stream`, `version`, the state `before` and the one `after` the correction.
    """
    old = records.transform(folded(aggregate)).withColumnRenamed("state", "before")
    new = records.transform(folded(corrected)).withColumnRenamed("state", "after")
    both = old.join(new.drop("version"), "stream")
    return both.where(~F.to_json("before").eqNullSafe(F.to_json("after")))


def _record(row: dict[str, Any]) -> Recorded:
    return Recorded(id="", at=_ANY, **row)


_ANY = datetime.fromisoformat("2000-01-01T00:00:00+00:00")  # evolve is not given the time
