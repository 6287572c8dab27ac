"""Nexmark's queries over windows, as a stream and in replay, against DuckDB."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest
from bench.nexmark.events import generate
from bench.nexmark.queries import QUERIES
from bench.nexmark.reference import answer

from penstock.testing import Feed

BATCHES = 3
FAR = datetime(2126, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def data():
    made = generate(6_000, seed=4, rate=100, disorder=timedelta(seconds=3))
    arrived = pa.array(
        [
            datetime(2026, 1, 1, tzinfo=UTC) + timedelta(milliseconds=10 * n)
            for n in made.bids["n"].to_pylist()
        ],
        pa.timestamp("us", "UTC"),
    )
    return type(made)(made.persons, made.auctions, made.bids.append_column("arrived", arrived))


def read_names(query):
    return query.__code__.co_varnames[: query.__code__.co_argcount]


def comparable(frame):
    """Sorted, with plain types, so that equal answers are equal."""
    plain = frame.with_columns(pl.col(pl.Datetime).dt.replace_time_zone(None).dt.cast_time_unit("us"))
    return sorted(plain.rows(), key=str)


def as_frame(rows, like):
    made = pl.DataFrame([tuple(row) for row in rows], orient="row", infer_schema_length=None)
    assert made.columns
    return made.rename(dict(zip(made.columns, like.columns, strict=True)))


@pytest.mark.parametrize("name", QUERIES)
def test_nexmark_is_what_duckdb_says(name, spark, data):
    query, wanted = QUERIES[name], answer(name, data)
    tables = {each: spark.createDataFrame(getattr(data, each)) for each in read_names(query)}
    whole = query(**tables)
    assert whole.columns == wanted.columns
    assert comparable(as_frame(whole.collect(), wanted)) == comparable(wanted)
    schemas = {each: table.schema for each, table in tables.items()}
    with Feed(spark, query, **schemas) as feed:
        for part in range(BATCHES):
            feed.send(**{each: part_of(getattr(data, each), part) for each in tables})
        feed.advance(FAR)
        assert comparable(as_frame(feed.results, wanted)) == comparable(wanted)


def part_of(table, number):
    size = -(-table.num_rows // BATCHES)
    return table.slice(number * size, size).to_pylist()
