"""Nexmark's queries over windows and joins, as a stream and in replay, against DuckDB."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest
from bench.nexmark.events import generate
from bench.nexmark.joins import ANSWERS
from bench.nexmark.queries import QUERIES
from bench.nexmark.reference import answer

from penstock.testing import Feed

BATCHES = 3
# One query for each operator; the others, which use the same ones in other ways, are for `make verify`.
QUICK = ("q3", "q5", "q8", "q18")
pytestmark = pytest.mark.timeout(400)
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


@pytest.fixture(scope="module")
def answers(spark, data, request):
    """What the chosen queries say in replay and as a stream; three at once, which saves half the time."""
    items = [item for item in request.session.items if item.path == request.path]
    chosen = [item.callspec.params["name"] for item in items]
    with ThreadPoolExecutor(3) as pool:
        found = pool.map(lambda name: answered(QUERIES[name], spark, data), chosen)
        return dict(zip(chosen, found, strict=True))


def answered(query, spark, data):
    tables = {each: spark.createDataFrame(getattr(data, each)) for each in read_names(query)}
    whole = query(**tables)
    schemas = {each: table.schema for each, table in tables.items()}
    with Feed(spark, query, **schemas) as feed:
        for part in range(BATCHES):
            feed.send(**{each: part_of(getattr(data, each), part) for each in tables})
        feed.advance(FAR)
        return whole.columns, whole.collect(), feed.results


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.long) for each in QUERIES]
)
def test_nexmark_is_what_duckdb_says(name, answers, data):
    wanted = answer(name, data)
    columns, replayed, streamed = answers[name]
    assert columns == wanted.columns
    for rows in (replayed, last_of_each(streamed, ANSWERS.get(name))):
        assert comparable(as_frame(rows, wanted)) == comparable(wanted)


def last_of_each(rows, key):
    """Of answers that were emitted anew the last ones."""
    return rows if key is None else list({row[key]: row for row in rows}.values())


def part_of(table, number):
    size = -(-table.num_rows // BATCHES)
    return table.slice(number * size, size).to_pylist()
