"""Duplicates over plain columns against the reference."""

from random import Random
from time import process_time

import polars as pl
import pytest
from tests.reference.dedup import First

from penstock.errors import FlowError
from penstock.process import dedup
from penstock.process.dedup import FirstStep
from penstock.process.windows import Late

SCHEMA = {"key": pl.String, "_us": pl.Int64, "_partition": pl.Int32, "_offset": pl.Int64, "_event": pl.Int64}
BEFORE = -(2**62)


def frame(events):
    return pl.DataFrame([(key, time, 0, name, name) for key, time, name in events], SCHEMA, orient="row")


@pytest.mark.parametrize("within", [1, 10, 50])
def test_the_first_passes_at_once_and_its_like_are_left_out(within):
    random, clock, latest, number = Random(within), 0, -(10**6), 0
    step, plain, kept = FirstStep(("key",), within, "late"), First(within), None
    for _ in range(60):
        now, events = latest - 3, []
        clock += random.choice((0, 2, 15))
        for _ in range(random.choice((0, 1, 20))):
            time = clock - random.choice((0, 0, random.randrange(30), random.randrange(120)))
            events.append((random.choice([None, *"abcdefgh"]), time, number))
            number, latest = number + 1, max(latest, time)
        done = step(kept, frame(events), BEFORE, now)
        kept = done.kept
        through = done.rows.filter(pl.col("_side_output").is_null())["_event"].to_list()
        late = done.rows.filter(pl.col("_side_output") == "late")["_event"].to_list()
        assert (through, late) == plain.step(events, now)
        assert done.timer is None or done.timer > now
    assert step(kept, frame([]), BEFORE, 10**6).kept.is_empty()


@pytest.mark.parametrize("spacing", [1, 9, 10, 25])
def test_many_events_of_a_key_in_one_batch_are_judged_in_the_order_of_the_log(spacing):
    """However they are spaced, and in whatever order their times come."""
    for seed in range(20):
        random, plain = Random(seed), First(10)
        events = [(random.choice([None, "a"]), spacing * random.randrange(60), n) for n in range(120)]
        first, second = events[:40], events[40:]
        done = FirstStep(("key",), 10, None)(None, frame(first), BEFORE, BEFORE)
        assert (done.rows["_event"].to_list(), []) == plain.step(first, BEFORE)
        done = FirstStep(("key",), 10, None)(done.kept, frame(second), BEFORE, BEFORE)
        assert (done.rows["_event"].to_list(), []) == plain.step(second, BEFORE)


def test_a_longer_time_holds_for_what_was_let_through_before():
    """State may hold events of a key that are nearer to each other than the time is now."""
    done = FirstStep(("key",), 5, None)(None, frame([("a", n, n) for n in (0, 6, 12)]), BEFORE, BEFORE)
    again = FirstStep(("key",), 20, None)(done.kept, frame([("a", n, n) for n in (-15, 31, 32)]), BEFORE, 0)
    assert (done.rows.height, again.rows["_event"].to_list()) == (3, [32])


def seconds_of(count):
    """The least of three times of processing events of a key that all pass."""
    rows = frame([("a", 10 * number, number) for number in range(count)])
    taken = []
    for _ in range(3):
        began = process_time()
        done = FirstStep(("key",), 10, None)(None, rows, BEFORE, BEFORE)
        taken.append(process_time() - began)
        assert done.rows.height == count
    return min(taken)


def test_ten_times_the_events_of_a_key_take_about_ten_times_as_long():
    assert seconds_of(20_000) < 40 * seconds_of(2_000)


def test_what_has_no_time_is_late_and_dropped_ones_are_counted():
    done = FirstStep(("key",), 10, None)(
        None, frame([("a", None, 1), ("a", 5, 2), ("a", 6, 3)]), BEFORE, BEFORE
    )
    assert (done.rows["_event"].to_list(), done.dropped) == ([2], 1)


def test_a_duplicate_can_not_be_corrected():
    with pytest.raises(FlowError, match="can't be corrected"):
        dedup.first("key", time="at", watermark="1 minute", late=Late.refire(within="1 hour"))
