"""Events held back until the watermark has passed them: each once, in the order of their times."""

from random import Random

import polars as pl
import pytest

from penstock.process.state.step import BEFORE, FOREVER
from penstock.process.time.reordering import ReorderStep

ROWS = {"_us": pl.Int64, "_partition": pl.Int32, "_offset": pl.Int64, "_event": pl.Int64}


@pytest.mark.parametrize("placed", [True, False])
def test_each_event_is_let_go_once_and_in_order(placed):
    """Without places, events of equal times keep the order in which they came."""
    random = Random(placed)
    log = [(number // 4 + random.choice((0, 0, 1, 90)), 0, placed * number, number) for number in range(300)]
    kept, emitted, mark, first = None, [], BEFORE, 0
    while first < len(log):
        size = random.randrange(1, 25)
        rows = pl.DataFrame(log[first : first + size], ROWS, orient="row")
        done = ReorderStep()(kept, rows, mark, first // 4 - 1)
        kept, emitted, mark, first = (
            done.kept,
            emitted + done.rows["_event"].to_list(),
            first // 4 - 1,
            first + size,
        )
        assert done.timer == kept["_us"].min()
    emitted += ReorderStep()(kept, rows.clear(), mark, FOREVER).rows["_event"].to_list()
    assert emitted == [number for *_, number in sorted(log, key=lambda row: (row[0], row[3]))]
