"""Events with the latest row of a table: Spark's own aggregate keeps the rows, in every mode."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import FlowError
from penstock.process.columns.names import SOURCE
from penstock.process.columns.refusals import refuse_missing
from penstock.process.keyed.recent import refuse_whole_batches
from penstock.process.keyed.tables import NOW, Tables
from penstock.process.state.pinned import ADDED, pinned

_KEY, _EVENT = "_key", "_event"


def latest(table: DataFrame, *, on: str, name: str = "row") -> Callable[[DataFrame], DataFrame]:
    """Put beside each event the row that a table has when the event comes, or null.

        payments.transform(joins.latest(profiles, on="card", name="profile"))

    `table` is the changes of a table as flows read them, with the same key. A flow that begins reads all that
    its tables hold before it takes its first event. Afterwards both come as they are written; where an event
    and a change come at the same time, either may be seen first. In a replay, the time of writing decides.
    """
    return lambda rows: _beside(rows, Tables((on,), {name: table}), name)


def _beside(rows: DataFrame, tables: Tables, name: str) -> DataFrame:
    refuse_missing(rows, tables.by, "the side of the events in a join with a table")
    if name in (*rows.columns, SOURCE):
        raise FlowError(f"events have a column {name!r} already", hint="choose another name=")
    own = StructType([column for column in rows.schema if column.name != SOURCE])
    pin = pinned(f"event beside {name}", own, streaming=rows.isStreaming)
    source = [SOURCE] if SOURCE in rows.columns else []
    now = F.struct(F.struct(*pin.columns()).alias(_EVENT), *source, *pin.beside()).alias(NOW)
    united = tables.beside(rows.select(F.col(f"`{tables.by[0]}`").alias(_KEY), now), [_KEY])
    if rows.isStreaming:
        refuse_whole_batches(rows)
        found = united.groupBy(_KEY).agg(F.last(NOW).alias(NOW), *tables.latest())
    else:
        found = united.select(NOW, *tables.latest([_KEY]))
    events = found.where(F.col(NOW).isNotNull())
    event = pin.whole(F.col(NOW)[_EVENT], F.col(NOW)[ADDED]).alias(_EVENT)
    beside = events.select(event, *tables.rows(), *(F.col(NOW)[part].alias(part) for part in source))
    return beside.select(f"{_EVENT}.*", *tables.names, *source)
