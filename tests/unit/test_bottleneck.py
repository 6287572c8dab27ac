"""What limits a flow, read from the report of a batch."""

import pytest

from penstock.pipeline.bottleneck import SINK, SLOTS, bottleneck
from penstock.pipeline.progress import Progress


def report(end=10, latest=110, *, state=(), parts=2, slots=8, **took):
    operators = [{"allUpdatesTimeMs": each, "numShufflePartitions": parts} for each in state]
    ends, latests = ({"sales": {"0": each, "1": each}} for each in (end, latest))
    return {
        "runId": "r", "batchId": 7, "timestamp": "now", "numInputRows": 10, "batchDuration": 1000,
        "sources": [
            {"endOffset": ends, "latestOffset": latests},
            {"endOffset": None, "latestOffset": "none"},
        ],
        "stateOperators": operators,
        "durationMs": {"triggerExecution": 1000} | took,
        SLOTS: slots,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("found", "part", "seconds"),
    [
        (report(addBatch=900, **{SINK: 100}), "source", 0.8),
        (report(addBatch=900, **{SINK: 700}), "sink", 0.7),
        (report(addBatch=900, **{SINK: 100}, state=(600, 400)), "state", 0.5),
        (report(addBatch=300, **{SINK: 100}), "overhead", 0.7),
    ],
)
def test_the_part_that_took_longest_limits(found, part, seconds):
    limit = bottleneck(found)
    assert (limit.behind, limit.part, limit.seconds) == (200, part, seconds)


def test_the_time_of_tasks_counts_by_how_many_run_side_by_side():
    alone = report(addBatch=900, **{SINK: 0}, state=(1000,), parts=16, slots=2)
    assert bottleneck(alone).part == "state"
    assert bottleneck(alone | {SLOTS: 16}).part == "source"


def test_state_is_never_longer_than_the_batch():
    assert bottleneck(report(addBatch=900, **{SINK: 500}, state=(9000,))).part == "sink"


def test_a_flow_that_is_not_behind_has_no_limit():
    assert bottleneck(report(end=110, addBatch=900, **{SINK: 1})) is None


def test_nobody_can_see_what_limits_where_spark_writes():
    assert bottleneck(report(addBatch=900)) is None


def test_progress_says_it():
    behind, even = (
        Progress.of("shop", "bill", report(end=each, addBatch=900, **{SINK: 0})) for each in (10, 110)
    )
    assert str(behind) == "batch 7: 10 rows in 1.00 s, 200 behind, limited by its source (0.9 s)"
    assert str(even) == "batch 7: 10 rows in 1.00 s"
