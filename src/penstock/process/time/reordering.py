"""Reordering: events wait until the watermark has come as far as they are, and go on in the order of time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import FlowError
from penstock.process.columns.names import ORDER, SOURCE, US
from penstock.process.columns.refusals import refuse_few_buckets, refuse_missing, refuse_unlike
from penstock.process.state.description import StateDescription
from penstock.process.state.step import Stepped
from penstock.process.state.vectorised import columns_of, vectorised
from penstock.process.time.horizon import passed
from penstock.process.time.order import column, order_of, required_time
from penstock.process.time.watermark import Watermark, as_watermark

STREAM = "stream"
_EVENT = "_event"
_STATE = "held back"  # as checkpoints have it


@dataclass(frozen=True)
class ReorderStep:
    """Keeps the events that are ahead of the watermark; one that is behind it goes on at once."""

    def __call__(self, kept: pl.DataFrame | None, rows: pl.DataFrame, last: int, now: int) -> Stepped:  # noqa: ARG002
        waiting = rows if kept is None else pl.concat([kept, rows])
        ripe = waiting.filter(pl.col(US) <= now).sort(*ORDER, maintain_order=True)
        waiting = waiting.filter(pl.col(US) > now)
        return Stepped(waiting, ripe.select(_EVENT), waiting.select(pl.col(US).min()).item())


def reordered(
    rows: DataFrame, by: Sequence[str], time: str, watermark: Watermark, *, buckets: int = 16
) -> DataFrame:
    """Return rows in the order of their times, key by key: as a stream when the watermark has passed them.

    What is dated ahead of the watermark's `future` does not move it, and waits as long as its own time says.
    """
    refuse_few_buckets(buckets)
    # The own time: that of the watermark is null where an event is dated ahead.
    own = rows.withColumn(US, F.unix_micros(required_time(rows, time)))
    timed = watermark.marked(own, column(rows, time))
    names = [f"_key{number}" if "." in name else name for number, name in enumerate(by)]
    keys = [column(rows, name).alias(alias) for name, alias in zip(by, names, strict=True)]
    event = F.struct(*(f"`{name}`" for name in rows.columns)).alias(_EVENT)
    taken = timed.select(*keys, US, *order_of(timed, numbered=True)[1:], event)
    if not rows.isStreaming:
        taken = passed(taken, F.timestamp_micros(US))
        return taken.repartition(*names).sortWithinPartitions(*ORDER).select(f"{_EVENT}.*")
    schema = StructType([taken.schema[_EVENT]])
    state = StateDescription.of(_STATE, columns_of(taken.schema, *names, *taken.columns), names, buckets)
    found = vectorised(taken, ReorderStep(), schema, state)
    return found.select(f"{_EVENT}.*")


def merged(*, by: str, time: str, watermark: Watermark | str | timedelta, **streams: DataFrame) -> DataFrame:
    """Return several streams as one, in which the events of a key come in the order of their times.

        merged(by="card", time="at", watermark="1 minute", payment=payments, login=logins)

    A row has the key, the time, `stream` (the name of the one that it is from), the event under that name and
    null under the others. In a replay all is sorted; in a stream, events wait for the watermark.
    """
    if not streams:
        raise FlowError("there is no stream to merge", hint="name them: merged(…, payment=payments)")
    columns = [by, time, STREAM, SOURCE, *streams]
    if len({*columns}) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise FlowError(f"merged streams have two columns {twice!r}", hint=f"theirs would be {columns}")
    first = next(iter(streams.values()))
    united = reduce(
        lambda one, other: one.unionByName(other, allowMissingColumns=True),
        (_named(rows, name, by, time, first) for name, rows in streams.items()),
    )
    return reordered(united, (by,), time, as_watermark(watermark))


def _named(rows: DataFrame, name: str, by: str, time: str, first: DataFrame) -> DataFrame:
    refuse_missing(rows, (by, time), f"the stream {name!r}")
    refuse_unlike(by, first.schema[by].dataType, by, rows.schema[by].dataType)
    source = [SOURCE] if SOURCE in rows.columns else []
    event = F.struct(*(f"`{each}`" for each in rows.columns if each != SOURCE)).alias(name)
    return rows.select(f"`{by}`", f"`{time}`", F.lit(name).alias(STREAM), event, *source)
