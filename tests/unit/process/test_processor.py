"""What Spark runs for a bucket: state is declared under its stored names, and work is unpickled with rows."""

from types import SimpleNamespace

import pandas as pd
import polars as pl
import pytest
from pyspark.cloudpickle import dumps, loads

from penstock.process.columns.lineage import NOTHING
from penstock.process.state.buckets import Buckets
from penstock.process.state.frames import pack, unpack
from penstock.process.state.processor import Processor
from penstock.process.state.step import FOREVER, Stepped
from penstock.process.state.steps import Steps

EMPTY = pl.DataFrame(schema={"n": pl.Int64})


class Waiting:
    """Keeps all rows until time ends, and looks again a millisecond after the watermark."""

    def __call__(self, kept, rows, last, now):
        held = rows if kept is None else pl.concat([kept, rows])
        ended = now == FOREVER
        return Stepped(held.clear() if ended else held, held if ended else held.clear(), now + 1)


class Handle:
    """Spark's handle, with values and timers in memory."""

    def __init__(self):
        self.declared, self.timers, self.held = {}, set(), None

    def getValueState(self, name, schema):
        self.declared[name] = schema
        return SimpleNamespace(get=lambda: self.held, update=lambda value: setattr(self, "held", value))

    def getMapState(self, name, *schemas):
        self.declared[name] = schemas
        return {}

    def listTimers(self):
        return list(self.timers)

    def deleteTimer(self, time):
        self.timers.discard(time)

    def registerTimer(self, time):
        self.timers.add(time)


def opened(work):
    """A processor that has come to a worker, and its handle."""
    processor, handle = loads(dumps(Processor("out", work))), Handle()
    processor.init(handle)
    return processor, handle


def taken(processor, rows, watermark):
    values = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark)
    frames = [pd.DataFrame({"rows": [pack(pl.DataFrame({"n": rows}))]})]
    return [
        unpack(each) for out in processor.handleInputRows((3,), iter(frames), values) for each in out["out"]
    ]


@pytest.mark.parametrize(
    ("work", "declared"),
    [
        (Steps(Waiting(), EMPTY, NOTHING), {"bucket": "kept binary, last long, dropped long, missed long"}),
        (
            Buckets(None, EMPTY, "out", NOTHING, streaming=True),
            {"bucket": "runs string, last long, swept long", "runs": ("number long", "packed binary")},
        ),
    ],
    ids=["steps", "buckets"],
)
def test_state_is_declared_under_the_names_that_checkpoints_have(work, declared):
    assert opened(work)[1].declared == declared


def test_a_stream_keeps_state_and_one_timer():
    processor, handle = opened(Steps(Waiting(), EMPTY, NOTHING))
    assert taken(processor, [1, 2], 5) == []
    assert handle.timers == {6}
    assert taken(processor, [3], 7) == []
    assert (unpack(handle.held[0])["n"].to_list(), handle.timers) == ([1, 2, 3], {8})


def test_in_a_batch_time_ends_with_the_rows():
    processor, handle = opened(Steps(Waiting(), EMPTY, NOTHING))
    assert [frame["n"].to_list() for frame in taken(processor, [1, 2], -1)] == [[1, 2]]
    assert (handle.held, handle.timers) == (None, set())
