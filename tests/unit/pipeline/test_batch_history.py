"""The figures of a flow's batches: totals lose nothing, samples stay few, latency is never said too low."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.batch_history import BatchHistory
from penstock.pipeline.flow_status import APART, KEPT, FlowStatus, LatencyHistogram, Trouble
from penstock.pipeline.latency import BOUNDS, Latencies, quantile
from penstock.pipeline.plan import MALFORMED


def observed(*ages, planned=50.0):
    """What the scan observes of records of these ages, in seconds, when their batch was planned."""
    within = {f"age{n}": sum(age <= bound for age in ages) for n, bound in enumerate(BOUNDS)}
    sums = {"age_sum": int(sum(ages) * 1e6), "planned": int(planned * 1e6)}
    return {**within, "ages": len(ages), "malformed": 0} | sums


def report(batch=0, rows=10, took=500, ages=(), **more):
    operators = [{"numRowsDroppedByWatermark": 2, "numRowsTotal": 30, "memoryUsedBytes": 4000}]
    return {
        "batchId": batch,
        "numInputRows": rows,
        "batchDuration": took,
        "durationMs": {"addBatch": took - 100, "triggerExecution": took},
        "sources": [{"endOffset": {"t": {"0": 10}}, "latestOffset": {"t": {"0": 17}}}],
        "stateOperators": operators,
        "eventTime": {"watermark": "1970-01-01T00:00:40.000Z", "max": "1970-01-01T00:01:00.000Z"},
        "observedMetrics": {f"{MALFORMED}t": observed(*ages)},
    } | more


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 1000)), min_size=1, max_size=300))
def test_thinning_keeps_the_sums_and_the_last_batch(batches):
    history, now = BatchHistory(), 1000.0
    for number, (pause, rows) in enumerate(batches):
        now += pause
        history.add(report(number, rows), now)
    kept = history.kept()
    assert history.batches == len(batches)
    assert history.rows == sum(rows for _, rows in batches)
    assert history.late == 2 * len(batches)
    assert (kept[-1].batch, kept[-1].at) == (len(batches) - 1, now)
    assert len(kept) <= KEPT
    if len(kept) < KEPT:
        assert sum(each.rows for each in kept) == history.rows
        assert sum(each.late for each in kept) == history.late
    apart = [later.at - earlier.at for earlier, later in pairwise(kept[:-1])]
    assert all(each >= APART for each in apart)


def test_a_sample_has_the_figures_of_its_batch():
    history = BatchHistory()
    history.add(report(batch=3, rows=7), 50.0)
    (found,) = history.kept()
    assert (found.batch, found.rows, found.seconds, found.behind) == (3, 7, 0.5, 7)
    assert (found.watermark, found.newest, found.late) == (40.0, 60.0, 2)
    assert (found.state_rows, found.state_bytes) == (30, 4000)
    assert history.phases == {"addBatch": 0.4, "triggerExecution": 0.5}


def test_rows_of_state_that_spark_does_not_count_are_not_known():
    def rows(counts_rows, **more):
        history = BatchHistory(counts_rows=counts_rows)
        history.add(report(**more), 50.0)
        return history.kept()[0].state_rows

    uncounted = [{"numRowsTotal": 0, "memoryUsedBytes": 4000}]
    assert rows(False, stateOperators=uncounted) is None
    assert rows(True, stateOperators=uncounted) == 0
    assert rows(False, stateOperators=[]) == 0, "it has no state"
    assert rows(False) == 30


def test_a_watermark_at_the_beginning_of_time_is_none():
    history = BatchHistory()
    history.add(report(eventTime={"watermark": "1970-01-01T00:00:00.000Z"}), 50.0)
    assert history.kept()[0].watermark is None


def test_the_latency_of_a_batch_that_was_tried_again_is_that_from_its_first_plan():
    """Spark repeats a planned batch with its first time; only its last try is in the report."""
    history = BatchHistory()
    history.add(report(took=200, ages=(0.01, 0.02)), 50.0 + 600)
    within = dict(zip(BOUNDS, history.latency.counts, strict=True))
    assert (within[300.0], within[3600.0]) == (0, 2)
    assert history.latency.sum == pytest.approx(1200, abs=1)


def test_latency_counts_every_event_once_and_never_too_well():
    history = BatchHistory()
    history.add(report(took=200, ages=(0.01, 0.04, 0.6, 7000.0)), 50.0)
    found = history.latency
    assert found.count == 4
    within = dict(zip(BOUNDS, found.counts, strict=True))
    assert within[0.1] == 0, "whoever took 0.2 s more can't be within 0.1 s"
    assert within[0.25] == 2
    assert within[1.0] == 2, "0.6 + 0.2 s may be within 1 s, but its bucket reaches to 1 s already"
    assert within[2.5] == 3
    assert within[3600.0] == 3
    assert found.sum == pytest.approx(0.01 + 0.04 + 0.6 + 7000 + 4 * 0.2)


def test_recent_latency_is_that_of_the_events_of_the_samples():
    """A flow that read a backlog at first, and is on time since."""
    history = BatchHistory()
    history.add(report(took=200, ages=[200.0] * 1000, batch=0), 50.0)
    assert history.recent == history.latency
    for number in range(1, KEPT + 2):
        at = 50.0 + APART * number
        on_time = {f"{MALFORMED}t": observed(0.1, 0.2, planned=at - 0.2)}
        history.add(report(took=200, batch=number, observedMetrics=on_time), at)
    kept = history.kept()
    assert len(kept) == KEPT
    assert (history.latency.count, history.recent.count) == (1000 + 2 * (KEPT + 1), 2 * KEPT)
    assert quantile(history.latency.counts, history.latency.count, 0.5) == 3600.0
    assert quantile(history.recent.counts, history.recent.count, 0.99) == 0.5
    assert history.recent.sum == pytest.approx(2 * KEPT * 0.35)


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 5)), min_size=1, max_size=200))
def test_recent_latency_has_as_many_events_as_the_samples_have_rows(batches):
    history, now = BatchHistory(), 1000.0
    for number, (pause, rows) in enumerate(batches):
        now += pause
        history.add(report(number, rows, ages=[0.1] * rows), now)
    assert history.recent.count == sum(each.rows for each in history.kept())


@given(st.lists(st.floats(0, 4000), min_size=1), st.floats(0, 100))
def test_no_bucket_has_more_than_really_were_within_it(ages, seconds):
    latencies = Latencies()
    latencies.add([observed(*ages)], seconds, now=50.0 + seconds)
    for bound, count in zip(BOUNDS, latencies.counts, strict=True):
        assert count <= sum(age + seconds <= bound + 1e-6 for age in ages)
    assert latencies.counts == sorted(latencies.counts)


def test_a_quantile_is_the_bound_below_which_a_share_is():
    counts = [0, 50, 90, 99, *[100] * (len(BOUNDS) - 4)]
    assert (quantile(counts, 100, 0.5), quantile(counts, 100, 0.9)) == (0.1, 0.25)
    assert (quantile(counts, 100, 0.99), quantile(counts, 100, 1.0)) == (0.5, 1.0)
    assert quantile(counts, 0, 0.5) is None
    assert quantile([0] * len(BOUNDS), 100, 0.5) is None, "it is above all bounds"


def test_a_full_status_is_small_and_comes_back():
    history, now = BatchHistory(), 1_800_000_000.123456
    for number in range(2 * KEPT):
        history.add(report(123_456 + number, 1_234_567, ages=(0.1, 1.0)), now + 11.7 * number)
    made = FlowStatus(
        "namespace:pipeline.a_flow_with_a_name",
        "running",
        now,
        now,
        "a-host-with-a-name/1234567",
        troubles=tuple(Trouble(now, "x" * 300) for _ in range(5)),
        latency=history.latency,
        recent=history.recent,
        phases=history.phases,
        samples=history.kept(),
    )
    assert len(made.samples) == KEPT
    assert len(made.to_json()) < 20_000
    assert FlowStatus.from_json(made.to_json()) == made
    assert (
        FlowStatus.from_json(b'{"label":"a.b","state":"new","at":1,"started":1,"process":"","more":1}').rows
        == 0
    )
    assert replace(made, latency=LatencyHistogram()).latency.count == 0
