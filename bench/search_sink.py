"""The sink of a search index against tantivy alone, which adds the same rows to an index without keys."""

import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import tantivy
from pyspark.sql import DataFrame, SparkSession

from penstock.log.ledger import Batch
from penstock.process import session
from penstock.settings import Settings
from penstock.targets import SearchIndex, SinkOptions

ROWS = 200_000
ROUNDS = 3


def main() -> None:
    print(
        f"Index {ROWS:,} rows of a key, a title, a text of 20 words and a number; median of {ROUNDS} rounds\n"
    )
    print("| way | rows/s | of tantivy alone |")
    print("|---|---:|---:|")
    spark = session(name="bench", partitions=2, shuffle=2)
    rows = make_rows(spark, ROWS).cache()
    arrow = rows.toArrow()
    rates = measure(rows, arrow)
    spark.stop()
    for name, rate in rates.items():
        print(f"| {name} | {rate:,.0f} | {rate / rates['tantivy alone']:.2f} |")


def make_rows(spark: SparkSession, count: int) -> DataFrame:
    words = "transform(sequence(1, 20), n -> concat('word', (id * n * 7919) % 20011))"
    return spark.range(0, count, 1, 2).selectExpr(
        "concat('/page/', id) as id",
        "concat('Page ', id) as title",
        f"concat_ws(' ', {words}) as body",
        "id as n",
    )


def measure(rows: DataFrame, arrow: pa.Table) -> dict[str, float]:
    """Return rows a second of each way; the rounds of all take turns."""
    taken: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            sink = SearchIndex(Path(folder) / "sink", text=("title", "body")).sink(
                rows.schema, SinkOptions(Settings(), "bench")
            )
            sink.open()
            taken.setdefault("tantivy alone", []).append(alone(Path(folder), arrow))
            for number, name in enumerate(("the sink, new rows", "the sink, all rows replaced")):
                start = time.perf_counter()
                sink.write(rows, Batch("bench", number))
                taken.setdefault(name, []).append(time.perf_counter() - start)
    return {name: ROWS / statistics.median(each) for name, each in taken.items()}


def alone(folder: Path, rows: pa.Table) -> float:
    """Add rows that are in memory, with their columns stored, as its documentation does; return the time."""
    builder = tantivy.SchemaBuilder().add_text_field("id", stored=True, tokenizer_name="raw")
    for name in ("title", "body"):
        builder = builder.add_text_field(name, stored=True)
    schema = builder.add_integer_field("n", stored=True, indexed=True, fast=True).build()
    (folder / "alone").mkdir()
    start = time.perf_counter()
    writer = tantivy.Index(schema, path=str(folder / "alone")).writer(64 * 1024 * 1024, 1)
    for row in rows.to_pylist():
        writer.add_document(tantivy.Document.from_dict(row, schema))
    writer.commit()
    writer.wait_merging_threads()
    return time.perf_counter() - start
