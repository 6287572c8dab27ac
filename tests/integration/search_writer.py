"""Writes batches into an index until it is killed: `python search_writer.py PATH`."""

import sys
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from penstock.log.ledger import Batch, Entry
from penstock.targets.search.description import Description
from penstock.targets.search.lane import SearchLanes

KEYS = 400
TYPES = {"id": IntegerType(), "n": IntegerType(), "t": StringType()}
SCHEMA = StructType([StructField(name, type) for name, type in TYPES.items()])


def lanes(path, sink="flow", seconds=20):
    described = Description.of(str(path), SCHEMA, ("id",), ("t",), "words")
    return SearchLanes(str(path), described, sink, timedelta(seconds=seconds))


def batch(number):
    return Batch("first", number, {"log": {0: number}}, {"log": {0: number + 1}})


def rows(number):
    """All keys of the batch before, and as many new ones: every batch both replaces and adds."""
    keys = range(number * KEYS // 2, number * KEYS // 2 + KEYS)
    columns = {"id": pa.array(keys, pa.int32()), "n": pa.array([number] * KEYS, pa.int32())}
    return pa.RecordBatch.from_pydict({**columns, "t": [f"word{key} " * 20 for key in keys]})


def expected(last):
    """What the index holds after a batch: of each key, the number of its last batch."""
    found = {}
    for number in range(last + 1):
        found.update(dict.fromkeys(range(number * KEYS // 2, number * KEYS // 2 + KEYS), number))
    return found


def write(path):
    """Go on after the last entry, as a flow that is started again does."""
    all_lanes = lanes(path)
    all_lanes.prepare(1)
    while True:
        lane = all_lanes.open(0)
        number = lane.entry.batch.number + 1 if lane.entry.batch else 0
        lane.write([rows(number)], Entry(1, batch(number)))
        lane.close()
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
