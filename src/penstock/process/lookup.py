"""Small tables beside every event: rules, prices, settings that change while a flow runs."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from penstock.errors import FlowError
from penstock.process.columns.names import DELETED, ROW_MARKS, SOURCE
from penstock.process.columns.refusals import refuse_missing
from penstock.process.wire.table_changes import newest_of_one_partition

_ONE, _ROW = "_one", "_row"


def current(changes: DataFrame, key: str) -> DataFrame:
    """Return the rows that a table has, of the changes that were made to it: the newest of each key."""
    whole = F.struct(*(f"`{name}`" for name in changes.columns))
    newest = F.max_by(whole, F.col(SOURCE)["offset"])
    checked = newest_of_one_partition(newest, F.col(SOURCE)["partition"], "a table that is looked up")
    rows = changes.groupBy(f"`{key}`").agg(checked.alias(_ROW)).select(f"{_ROW}.*")
    return rows.where(~F.col(DELETED)).drop(*ROW_MARKS)


def broadcast(table: DataFrame, *, by: str, name: str) -> Callable[[DataFrame], DataFrame]:
    """Put a whole small table beside each event: in the column `name`, a map from its keys to its rows.

    judged = payments.transform(lookup.broadcast(rules, by="name", name="rules"))
    judged.where("amount > rules['large'].threshold")
    """
    if table.isStreaming:
        raise FlowError(
            "a table that is looked up can't be a stream",
            hint="give it to the flow as looks_up={…}, not as reads={…}",
        )
    refuse_missing(table, (by,), "a table that is looked up")
    whole_row = F.struct(*(f"`{column}`" for column in table.columns))
    entries = F.collect_list(F.struct(F.col(f"`{by}`"), whole_row))
    whole = table.agg(F.map_from_entries(entries).alias(name))
    joined = F.broadcast(whole.withColumn(_ONE, _zero(F.size(name))))

    def beside(rows: DataFrame) -> DataFrame:
        if name in rows.columns:
            raise FlowError(f"events have a column {name!r} already", hint="choose another name=")
        return rows.withColumn(_ONE, _zero(_any_column(rows))).join(joined, _ONE, "left").drop(_ONE)

    return beside


def _zero(column: Column) -> Column:
    """Zero, of which Spark does not see that it always is: real-time mode can't join without a key."""
    return F.pmod(F.xxhash64(column), F.lit(1).cast("long"))


def _any_column(rows: DataFrame) -> Column:
    return next(F.col(f"`{field.name}`") for field in rows.schema if not isinstance(field.dataType, MapType))
