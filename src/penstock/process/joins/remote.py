"""Events with rows of a table that has no changelog: a database is asked, for many keys at once."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from penstock.durations import duration
from penstock.errors import FlowError
from penstock.process.state.frames import arrow_batches
from penstock.process.state.vectorised import arrow_schema, empty_frame
from penstock.settings import Secret, reveal

Ask = Callable[[list[Any]], pl.DataFrame]
_KEY, _EXPIRES = "_key", "_expires"
_AT_ONCE = 1_000  # keys in a question
_JOINS = 16  # of which a worker remembers something; each plan has new ones
_known: dict[str, pl.DataFrame] = {}  # what a worker has learned, by join
_asked: dict[str, float] = {}  # when it has asked for the last time


def remote(
    ask: Ask,
    *,
    on: str,
    returns: str,
    name: str = "row",
    ttl: str | timedelta = "1 minute",
    rate: float = 10,
    at_most: int = 100_000,
) -> Callable[[DataFrame], DataFrame]:
    """Put beside each event the row that a database has for it, or null.

        profiles = joins.Postgres(address, "select card, home from profiles where card = any(%s)")
        payments.transform(joins.remote(profiles, on="card", returns="card string, home string"))

    `ask` gets keys and returns a frame of Polars with the columns that `returns` declares, of which the
    first is the key. What it says, also that there is no row, is remembered for so long as `ttl`, for the
    last `at_most` keys. Each worker asks at most `rate` times a second, for up to 1,000 keys each time, and
    waits otherwise. The answers are those of the time of asking: a replay or a batch that is repeated after
    a crash may get others.
    """
    schema = cast(StructType, StructType.fromDDL(returns))
    if rate <= 0 or at_most < 1:
        raise FlowError(f"a lookup {rate} times a second, {at_most} rows remembered: expected more than 0")
    life = duration(ttl).total_seconds()

    def joined(rows: DataFrame) -> DataFrame:
        if on not in rows.columns or name in rows.columns:
            raise FlowError(
                f"events need a column {on!r} and none {name!r}", hint=f"there are {rows.columns}"
            )
        result = StructType([*rows.schema, *StructType().add(name, schema)])
        like = empty_frame(rows, schema)
        work = Lookup(ask, on, name, like, arrow_schema(rows, result), life, 1 / rate, at_most)
        return rows.mapInArrow(work, result)

    return joined


@dataclass(frozen=True)
class Postgres:
    """Asks PostgreSQL, over a connection for each question; the query has one place, for the keys."""

    address: str | Secret
    query: str

    def __call__(self, keys: list[Any]) -> pl.DataFrame:
        import psycopg  # here: only the workers that ask need it

        with psycopg.connect(reveal(self.address), autocommit=True) as connection:
            found = connection.execute(self.query, [keys])
            names = [column.name for column in found.description or ()]
            return pl.DataFrame(found.fetchall(), names, orient="row", infer_schema_length=None)


@dataclass(frozen=True)
class Lookup:
    """The rows of keys, from what is remembered or from the database."""

    ask: Ask
    on: str
    name: str
    like: pl.DataFrame
    schema: pa.Schema
    ttl: float
    interval: float
    at_most: int
    id: str = field(default_factory=lambda: uuid4().hex)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            events = pl.DataFrame(batch)
            rows = self._rows(events[self.on].drop_nulls().unique())
            beside = events.join(rows, left_on=self.on, right_on=_KEY, how="left", maintain_order="left")
            yield from arrow_batches(beside.select(*events.columns, self.name), self.schema)

    def _rows(self, keys: pl.Series) -> pl.DataFrame:
        """Return what is there of keys, asked for where it is not remembered."""
        known = _known.get(self.id, self._answer([], self.like)).filter(pl.col(_EXPIRES) > time.time())
        missing = keys.filter(~keys.is_in(known[_KEY].implode())).to_list()
        for first in range(0, len(missing), _AT_ONCE):
            known = pl.concat([known, self._asked_for(missing[first : first + _AT_ONCE])])
        self._remember(known.tail(self.at_most))
        return known.select(_KEY, self.name)

    def _remember(self, known: pl.DataFrame) -> None:
        """Keep what is known, the last used behind: a worker outlives the plans that it worked for."""
        _known.pop(self.id, None)
        _known[self.id] = known
        for id in list(_known)[:-_JOINS]:
            _known.pop(id)
        for id in {*_asked} - {*_known}:
            _asked.pop(id)

    def _asked_for(self, keys: list[Any]) -> pl.DataFrame:
        time.sleep(max(0.0, _asked.get(self.id, 0.0) + self.interval - time.monotonic()))
        _asked[self.id] = time.monotonic()
        found = self.ask(keys)
        missing = [column for column in self.like.columns if column not in found.columns]
        if missing:
            raise FlowError(f"a lookup returned no column {missing[0]!r}, but {', '.join(found.columns)}")
        return self._answer(keys, found.select(self.like.columns).cast(self.like.schema))

    def _answer(self, keys: list[Any], rows: pl.DataFrame) -> pl.DataFrame:
        """For each key its row, or null."""
        key = self.like.columns[0]
        twice = rows.filter(rows[key].is_duplicated())
        if twice.height:
            raise FlowError(f"a lookup returned more than one row for {twice[key][0]!r}")
        named = rows.select(pl.col(key).alias(_KEY), pl.struct(rows.columns).alias(self.name))
        asked = pl.DataFrame({_KEY: pl.Series(keys, dtype=self.like.schema[key])})
        expires = pl.lit(time.time() + self.ttl).alias(_EXPIRES)
        return asked.join(named, on=_KEY, how="left", maintain_order="left").with_columns(expires)
