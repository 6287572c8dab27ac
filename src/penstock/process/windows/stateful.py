"""Windows with a late policy: planned as steps over buckets of keys, with their results in columns."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, LongType, NullType, StringType, StructField, StructType

from penstock.documents import JsonObject
from penstock.durations import MICROSECOND
from penstock.process.columns.lineage import original
from penstock.process.columns.names import END, START, TIME
from penstock.process.columns.naming import named, quoted, type_of
from penstock.process.columns.side_output import SIDE_OUTPUT
from penstock.process.state.description import StateDescription
from penstock.process.state.step import BEFORE, Step
from penstock.process.state.vectorised import columns_of, vectorised
from penstock.process.time.late import Late
from penstock.process.time.order import order_of
from penstock.process.windows.aggregates import Aggregate
from penstock.process.windows.kept import EVENT, KIND, ROWS, Kept
from penstock.process.windows.panes import Panes
from penstock.process.windows.sessions import Sessions
from penstock.process.windows.shape import Fixed, Session, Shape, Sliding
from penstock.process.windows.sliding import Slides
from penstock.process.windows.steps import FoldedStep, PaneFold, WindowStep

WINDOWS = "penstock.windows"  # in the metadata of `rows`: what the results are windows of
RESULT_COLUMNS = (START, END, KIND, ROWS)  # what every result has besides its key and its aggregates
_ID = {"timeZone": "UTC", "ignoreNullFields": "false"}


def windowed(
    timed: DataFrame,
    shape: Shape,
    by: tuple[str, ...],
    aggregates: Mapping[str, Aggregate],
    *,
    late: Late,
    buckets: int,
) -> DataFrame:
    """Return the results of windows over rows with a watermark, and in a side output what was too late.

    A sliding window's result has the columns of its event, and so has what came too late.
    """
    event = [name for name in timed.columns if name != TIME]
    aside = (
        [F.struct(*map(quoted, event)).alias(EVENT)] if late.side_output or isinstance(shape, Sliding) else []
    )
    order = order_of(timed) if any(each.ordered for each in aggregates.values()) else order_of(timed)[:1]
    columns = timed.select(*map(quoted, by), *order, *inputs_of(timed, aggregates), *aside)
    results = fields_of(timed, aggregates)
    kept = _kept(shape, by, aggregates, late)
    begins = 0 if timed.isStreaming else BEFORE
    step: Step = WindowStep(kept, late.side_output, begins)
    fold: PaneFold | None = None
    if isinstance(kept, Panes) and late.side_output is None:
        step, fold = FoldedStep(kept, begins), PaneFold(kept)
    state = _state(timed, columns, shape, by, aggregates, buckets)
    found = vectorised(columns, step, _schema(columns, by, results, late), state, fold=fold)
    return _results(found.withColumn(ROWS, _described(kept)), event, by, list(aggregates), late)


def _state(
    timed: DataFrame,
    columns: DataFrame,
    shape: Shape,
    by: tuple[str, ...],
    aggregates: Mapping[str, Aggregate],
    buckets: int,
) -> StateDescription:
    kinds = ", ".join(f"{name} {each.description}" for name, each in aggregates.items())
    event = [EVENT] if isinstance(shape, Sliding) else []
    kept = columns_of(columns.schema, *by, *aggregates, *event)
    kind = f"{shape} with {original_kinds(timed, aggregates)}"
    return StateDescription.of(kind, kept, by, buckets, title=f"{shape} with {kinds}")


def original_kinds(rows: DataFrame, aggregates: Mapping[str, Aggregate]) -> str:
    """What aggregates are, by the oldest names of their columns."""
    named = {name: each.column and original(rows.schema, each.column) for name, each in aggregates.items()}
    return ", ".join(
        f"{name} {replace(each, column=named[name]).description}" for name, each in aggregates.items()
    )


def _kept(shape: Shape, by: tuple[str, ...], aggregates: Mapping[str, Aggregate], late: Late) -> Kept:
    within = late.within // MICROSECOND
    if isinstance(shape, Fixed):
        return Panes(by, aggregates, within, shape)
    if isinstance(shape, Session):
        return Sessions(by, aggregates, within, shape)
    return Slides(by, aggregates, within, shape)


def _described(kept: Kept) -> Column:
    """The count of rows, which also has in its metadata what the results are windows of."""
    windows: JsonObject = {"by": list(kept.by), "place": kept.place, "each": isinstance(kept, Slides)}
    if isinstance(kept, Panes) and kept.shape.every < kept.shape.size:
        windows["overlap"] = [kept.shape.size // MICROSECOND, kept.shape.every // MICROSECOND]
    return F.col(ROWS).alias(ROWS, metadata={WINDOWS: windows})


def inputs_of(rows: DataFrame, aggregates: Mapping[str, Aggregate]) -> list[Column]:
    """What aggregates take in of rows, under their names."""
    values = {
        name: F.lit(1) if each.column is None else named(rows, each.column)
        for name, each in aggregates.items()
    }
    return [
        each.input(values[name], _input_type(rows, each)).alias(name) for name, each in aggregates.items()
    ]


def fields_of(rows: DataFrame, aggregates: Mapping[str, Aggregate]) -> list[StructField]:
    """The values of aggregates of rows; what one can't be of is refused."""
    return [StructField(name, each.type(_input_type(rows, each))) for name, each in aggregates.items()]


def _input_type(rows: DataFrame, aggregate: Aggregate) -> DataType:
    return NullType() if aggregate.column is None else type_of(rows, aggregate.column)


def _schema(columns: DataFrame, by: tuple[str, ...], results: list[StructField], late: Late) -> StructType:
    own = [StructField(START, LongType()), StructField(END, LongType())]
    own += [StructField(KIND, StringType()), StructField(ROWS, LongType())]
    if EVENT in columns.columns:
        results = [*results, columns.schema[EVENT]]
    if late.side_output:
        results = [*results, StructField(SIDE_OUTPUT, StringType())]
    return StructType([*(columns.schema[name] for name in by), *own, *results])


def _results(
    found: DataFrame, event: list[str], by: tuple[str, ...], names: list[str], late: Late
) -> DataFrame:
    """Give results their times, and late events their own columns beside them."""
    times = (F.timestamp_micros(place).alias(place) for place in (START, END))
    results: list[Column | str] = [*map(quoted, by), *times, KIND, ROWS, *map(quoted, names)]
    if EVENT not in found.columns:
        return found.select(*results)
    rest = [
        F.coalesce(F.col(EVENT)["id"], _result_id(by)).alias("id")
        if name == "id"
        else F.col(EVENT)[name].alias(name)
        for name in event
        if name not in by
    ]
    return found.select(*results, *rest, *([SIDE_OUTPUT] if late.side_output else []))


def _result_id(by: tuple[str, ...]) -> Column:
    """The same result has the same id, whenever it is computed; a corrected one has another."""
    return F.md5(F.to_json(F.struct(*map(quoted, by), START, END, KIND, ROWS), _ID))
