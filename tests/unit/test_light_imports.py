"""Imports are free: what is heavy is imported where it is used, and nothing is read meanwhile."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from pyspark.cloudpickle import dumps
from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasUdfUtils

import penstock
from penstock.durations import MICROSECOND
from penstock.process.columns.lineage import NOTHING
from penstock.process.dedup import FirstStep
from penstock.process.keyed.function import KeyedFunction
from penstock.process.keyed.step import KeyedStep
from penstock.process.state.buckets import Buckets
from penstock.process.state.processor import Processor
from penstock.process.state.steps import Steps
from penstock.process.windows.aggregates import Count
from penstock.process.windows.panes import Panes
from penstock.process.windows.shape import Fixed
from penstock.process.windows.steps import FoldedStep, PaneFold

HEAVY = ("confluent_kafka", "fastavro", "numpy", "pandas", "polars", "psycopg", "pyarrow", "starlette")
PLANNING = (
    "confluent_kafka",
    "fastavro",
    "pandas",
    "psycopg",
    "starlette",
    "penstock.log",
    "penstock.schemas",
)
ROOT = Path(penstock.__path__[0])
PANES = Panes(("key",), {"n": Count()}, 0, Fixed(60_000_000 * MICROSECOND, 60_000_000 * MICROSECOND))
ROWS = pl.DataFrame(schema={"key": pl.String, "_us": pl.Int64, "n": pl.Int32})
EVENTS = pl.DataFrame(
    schema={
        "key": pl.String,
        "_us": pl.Int64,
        "_partition": pl.Int32,
        "_offset": pl.Int64,
        "_event": pl.Struct([]),
    }
)
STATE = pl.DataFrame(schema={"key": pl.String, "total": pl.Float64})
KEYED = KeyedStep(KeyedFunction(lambda rows, state: (state, rows), ("key",), STATE, ROWS, "polars"))
WORK = {
    "windows": Steps(FoldedStep(PANES), PaneFold(PANES)(ROWS), NOTHING),
    "dedup": Steps(FirstStep(("key",), 1, None), EVENTS, NOTHING),
    "keyed": Buckets(KEYED, ROWS, "state", NOTHING, streaming=True),
}


def imported(program, names, given=b""):
    """Which of the names a new process has imported after a program."""
    shown = f"\nimport sys; print([each for each in {names} if each in sys.modules])"
    command = [sys.executable, "-c", program + shown]
    return (
        subprocess.run(command, input=given, capture_output=True, check=True).stdout.decode().splitlines()[-1]
    )


@pytest.mark.parametrize("package", ["penstock.process", "penstock.pipeline"])
def test_a_package_costs_nothing_until_it_is_used(package):
    assert imported(f"import {package}; dir({package})", (*HEAVY, "pyspark")) == "[]"


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_worker_that_is_asked_for_state_imports_neither_frames_nor_steps(work):
    step = dumps(TransformWithStateInPandasUdfUtils(Processor("n", work), "None").transformWithStateUDF)
    worker = "import pickle, sys, pyspark.sql.streaming.transform_with_state_driver_worker"
    ask = f"{worker}; pickle.loads(sys.stdin.buffer.read())"
    assert imported(ask, (*HEAVY, "penstock.process.state.frames"), step) == "[]"


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_worker_with_rows_imports_nothing_of_the_log(work):
    assert (
        imported("import pickle, sys; pickle.loads(sys.stdin.buffer.read())", PLANNING, dumps(work)) == "[]"
    )


def modules(package):
    paths = (ROOT / package).rglob("*.py")
    names = [".".join(path.relative_to(ROOT.parent).with_suffix("").parts) for path in paths]
    return sorted(name.removesuffix(".__init__") for name in names)


READING = """
import os, sys

def by_penstock(frame):
    while frame is not None and "importlib" not in frame.f_code.co_filename:
        if frame.f_globals.get("__name__", "").startswith("penstock"):
            return frame.f_globals["__name__"]
        frame = frame.f_back

seen = set()

class Watched(dict):
    def __getitem__(self, name):
        seen.add((by_penstock(sys._getframe(1)), name))
        return super().__getitem__(name)
    def get(self, name, default=None):
        seen.add((by_penstock(sys._getframe(1)), name))
        return super().get(name, default)

def opened(event, arguments):
    if event in ("open", "os.listdir", "os.scandir"):
        seen.add((by_penstock(sys._getframe(1)), str(arguments[0])))

os.environ = Watched(os.environ)
sys.addaudithook(opened)
import importlib
for name in {names}:
    importlib.import_module(name)
print(sorted(each for each in seen if each[0]))
"""


@pytest.mark.parametrize("package", ["process", "pipeline"])
def test_neither_the_environment_nor_a_file_is_read_at_import(package):
    command = [sys.executable, "-c", READING.replace("{names}", repr(modules(package)))]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "[]\n"
