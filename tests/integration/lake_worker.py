"""A process that writes batches to two lake tables, to be killed: `python lake_worker.py folder batches`.

It goes on where the ledgers end.
"""

import os
import sys
from pathlib import Path

from pyspark.sql import functions as F
from tests import quick

from penstock.process import session
from penstock.settings import Settings
from penstock.targets import LakeTable, SinkOptions
from penstock.testing.sink_contract import batch

SIZE, KEYS = 500, 90


def tables(folder):
    """The two tables: one takes all rows, the other the last of each key, without those that end on 7."""
    appended = LakeTable(str(folder / "appended"), compact=5)
    return appended, LakeTable(str(folder / "upserted"), key="key", write="upsert", compact=5)


def rows(spark, number, upsert):
    made = spark.range(number * SIZE, (number + 1) * SIZE, numPartitions=3)
    made = made.select("id", (F.col("id") % KEYS).cast("string").alias("key"))
    return (
        made.select("*", F.expr("id % 10 = 7 AS _deleted"), F.col("id").alias("_order")) if upsert else made
    )


def report(what):
    os.write(1, f"{what}\n".encode())


def main(folder, batches):
    spark = session(Settings(), name="lake", partitions=3, shuffle=2, config=quick.SPARK)
    sinks = []
    for table in tables(folder):
        shape = rows(spark, 0, table.write == "upsert").schema
        sink = table.sink(shape, SinkOptions(Settings(), f"worker.{table.write}"))
        (entry,) = sink.open()
        sinks.append((sink, table, entry.batch.number + 1 if entry.batch else 0))
    report("ready")
    for number in range(batches):
        for sink, table, start in sinks:
            if number >= start:
                made = rows(spark, number, table.write == "upsert")
                sink.write(made, batch(number, number, number + 1))
        report(number)
    report("done")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
