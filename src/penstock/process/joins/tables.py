"""Two tables, joined as a view that is kept right: a change of either one gives those of the result."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import polars as pl
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import FlowError
from penstock.process.columns.keys import as_text, comparable, is_plain, is_readable
from penstock.process.columns.lineage import lineage_of
from penstock.process.columns.names import DELETED, SOURCE
from penstock.process.columns.refusals import refuse_few_buckets, refuse_missing, refuse_unlike
from penstock.process.joins.view import (
    ID,
    KEY,
    LEFT,
    LEFT_ID,
    NEW,
    OLD,
    RESULT,
    RIGHT,
    RIGHT_ID,
    SIDE,
    ViewStep,
    moved,
    net,
)
from penstock.process.joins.within import How
from penstock.process.keyed.stateful import stateful
from penstock.process.state.buckets import Buckets
from penstock.process.state.description import StateDescription
from penstock.process.state.frames import arrow_batches
from penstock.process.state.hashes import key_bucket, row_hash
from penstock.process.state.runs import GONE, HASH
from penstock.process.state.vectorised import arrow_schema, empty_frame, through_buckets
from penstock.process.wire.table_changes import is_gone, newest_of_one_partition, whole_row

CHANGE = "change"
_ROW = "_row"
_SOURCE_PARTS = ("topic", "partition", "offset", "written")


def tables(
    other: DataFrame,
    *,
    on: str | tuple[str, str],
    keys: str | tuple[str, str],
    how: How = "inner",
    names: tuple[str, str] = ("left", "right"),
    buckets: int = 16,
) -> "TableJoin":
    """Join a table with another, and emit each insert, update and delete of the result.

        orders.transform(joins.tables(products, on=("product", "sku"), keys=("order", "sku"), how="left",
                                      names=("order", "product")))

    Both are changes of tables as flows read them; `keys` are what distinguishes their rows, `on` is what
    they are joined on: one name, or one for each side. A row of the result has the two rows under their
    `names`, `change` ("insert", "update" or "delete") and `_deleted`; one that was deleted shows what it was.
    What changes no column emits nothing: leave out before what is not needed, as an event's `id`. In replay
    there is one insert for each row that is left.
    """
    both_on, both_keys = ((each, each) if isinstance(each, str) else each for each in (on, keys))
    if how not in get_args(How):
        raise FlowError(f"there is no {how!r} join", hint=f"choose one of {', '.join(get_args(How))}")
    if len({*names, CHANGE, DELETED, SOURCE}) < 5:
        raise FlowError(f"the names {names[0]!r} and {names[1]!r} are not free", hint="choose others: names=")
    refuse_few_buckets(buckets)
    return TableJoin(other, both_on, both_keys, how, names, buckets)


@dataclass(frozen=True)
class TableJoin:
    """What `tables` returns."""

    other: DataFrame
    on: tuple[str, str]
    keys: tuple[str, str]
    how: How
    names: tuple[str, str]
    buckets: int

    def __call__(self, rows: DataFrame) -> DataFrame:
        self._check(rows)
        sides = [self._side(frame, side) for side, frame in enumerate((rows, self.other))]
        if not rows.isStreaming:
            return self._replayed(sides)
        followed = [self._followed(frame, side) for side, frame in enumerate(sides)]
        return self._netted(self._changed(followed, self._encoded(rows)))

    def _side(self, rows: DataFrame, side: int) -> DataFrame:
        """Changes of a table: what a row is joined on, its id, whether it is gone, the row and its place."""
        on, key = (F.col(f"`{name}`") for name in (self.on[side], self.keys[side]))
        return rows.select(
            comparable(on, rows.schema[self.on[side]].dataType).alias(KEY),
            as_text(key, rows.schema[self.keys[side]].dataType).alias(ID),
            is_gone(rows).alias(GONE),
            whole_row(rows).alias(_ROW),
            F.struct(*(F.col(SOURCE)[part].alias(part) for part in _SOURCE_PARTS)).alias(SOURCE),
        )

    def _check(self, rows: DataFrame) -> None:
        for side, frame in enumerate((rows, self.other)):
            needed = (self.on[side], self.keys[side], SOURCE)
            refuse_missing(frame, needed, f"the {self.names[side]!r} side of a join")
        left, right = rows.schema[self.on[0]].dataType, self.other.schema[self.on[1]].dataType
        refuse_unlike(self.on[0], left, self.on[1], right)
        if rows.isStreaming != self.other.isStreaming:
            raise FlowError("one side of a join of tables is a stream, and the other is not")

    def _encoded(self, rows: DataFrame) -> str:
        """What is kept of keys that have no text or value of their own: other keys are another state."""
        on = [rows.schema[self.on[0]].dataType]
        keys = [frame.schema[key].dataType for frame, key in zip((rows, self.other), self.keys, strict=True)]
        kinds = [kind for kind in on if not is_plain(kind)] + [key for key in keys if not is_readable(key)]
        return f" by {', '.join(kind.simpleString() for kind in kinds)}" if kinds else ""

    def _followed(self, changes: DataFrame, side: int) -> DataFrame:
        """A row that is joined on something else than its key has to be followed when that changes."""
        if self.on[side] == self.keys[side]:
            return changes
        kind = changes.schema[KEY].dataType.simpleString()
        state = f"{KEY}_before {kind}, {OLD} boolean"
        return changes.transform(
            stateful(moved, by=ID, state=state, returns=changes.schema, buckets=self.buckets)
        )

    def _changed(self, sides: list[DataFrame], encoded: str) -> DataFrame:
        """Through the state of both sides: rows of the join as they were and are."""
        named = [
            frame.withColumnRenamed(_ROW, row).withColumn(SIDE, F.lit(side))
            for side, (frame, row) in enumerate(zip(sides, (LEFT, RIGHT), strict=True))
        ]
        united = named[0].unionByName(named[1], allowMissingColumns=True)
        placed = united.withColumn(HASH, row_hash(KEY, (SIDE, ID)))
        empty = empty_frame(placed, placed.schema)
        step = ViewStep(self.how, empty)
        title = f"{self.how} join of {_kinds(placed)}{encoded}"
        kind = f"{self.how} join{encoded}"
        state = StateDescription.of(kind, placed.schema, (KEY,), self.buckets, title=title)
        work = Buckets(step, empty, state.column, lineage_of(placed.schema), streaming=True)
        pair = StructType([placed.schema[LEFT], placed.schema[RIGHT]])
        schema = (
            StructType()
            .add(LEFT_ID, "string")
            .add(RIGHT_ID, "string")
            .add(OLD, pair)
            .add(NEW, pair)
            .add(placed.schema[SOURCE])
        )
        bucket = key_bucket(KEY, self.buckets)
        return through_buckets(placed, bucket, work, schema, state, times="None")

    def _netted(self, changed: DataFrame) -> DataFrame:
        """Where a row has moved from one key to another, both have emitted it: brought together here."""
        result = [column.alias(name) for column, name in zip(self._result(), RESULT, strict=True)]
        spread = changed.select(*result, OLD, NEW, SOURCE).repartition(*RESULT)
        schema = spread.schema
        netted = spread.mapInArrow(_Net(arrow_schema(spread, schema)), schema)
        deleted, new = F.col(NEW).isNull(), F.coalesce(NEW, OLD)
        change = F.when(deleted, "delete").when(F.col(OLD).isNull(), "insert").otherwise("update")
        return netted.select(
            *(new[row].alias(name) for row, name in zip((LEFT, RIGHT), self.names, strict=True)),
            change.alias(CHANGE),
            deleted.alias(DELETED),
            SOURCE,
        )

    def _result(self) -> tuple[Column, Column]:
        """What distinguishes rows of the result: the side that can be there only once needs not be named."""
        left, right, none = F.col(LEFT_ID), F.col(RIGHT_ID), F.lit(None).cast("string")
        once = [on == key for on, key in zip(self.on, self.keys, strict=True)]
        if all(once):
            return F.coalesce(left, right), none
        if once[1]:
            return left, F.when(left.isNull(), right)
        if once[0]:
            return F.when(right.isNull(), left), right
        return left, right

    def _replayed(self, sides: list[DataFrame]) -> DataFrame:
        """A join of the rows that are left, by Spark."""
        left, right = (
            _latest(frame).select(KEY, F.col(_ROW).alias(row), F.col(SOURCE).alias(f"{SOURCE}{row}"))
            for frame, row in zip(sides, (LEFT, RIGHT), strict=True)
        )
        own, other = (F.col(f"{SOURCE}{row}") for row in (LEFT, RIGHT))
        later = own.isNull() | F.coalesce(other["written"] > own["written"], F.lit(False))
        return left.join(right, KEY, self.how).select(
            *(F.col(row).alias(name) for row, name in zip((LEFT, RIGHT), self.names, strict=True)),
            F.lit("insert").alias(CHANGE),
            F.lit(False).alias(DELETED),
            F.when(later, other).otherwise(own).alias(SOURCE),
        )


@dataclass(frozen=True)
class _Net:
    """All changes of a batch that have come to one place, as one frame."""

    schema: pa.Schema

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        if held:
            yield from arrow_batches(net(pl.DataFrame(pa.Table.from_batches(held))), self.schema)


def _latest(changes: DataFrame) -> DataFrame:
    newest = F.max_by(F.struct(*changes.columns), F.col(SOURCE)["offset"])
    checked = newest_of_one_partition(newest, F.col(SOURCE)["partition"], "a table that is joined")
    return changes.groupBy(ID).agg(checked.alias("newest")).select("newest.*").where(~F.col(GONE))


def _kinds(rows: DataFrame) -> str:
    return f"{rows.schema[LEFT].dataType.simpleString()} and {rows.schema[RIGHT].dataType.simpleString()}"
