"""Versions of a table's rows as frames alone, against a plain search: disorder, equal times, any batches."""

from random import Random
from zlib import crc32

import polars as pl
import pytest
from tests.reference import joins as reference

from penstock.process.columns.names import OFFSET, PARTITION, US
from penstock.process.joins.versions import (
    CLOCK,
    CORRECTED,
    CUT,
    EVENT,
    EVENT_KIND,
    KEY,
    KIND,
    ROW,
    TRUNCATED,
    VERSION_KIND,
    VersionsStep,
)
from penstock.process.state.runs import GONE, HASH, merged
from penstock.process.state.step import BEFORE

RUN = {
    KEY: pl.String,
    US: pl.Int64,
    PARTITION: pl.Int32,
    OFFSET: pl.Int64,
    KIND: pl.Int32,
    EVENT: pl.Struct({"n": pl.Int64}),
    ROW: pl.Struct({"home": pl.String}),
    CUT: pl.Boolean,
    GONE: pl.Boolean,
    HASH: pl.Int64,
}


class State:
    """Runs the step over batches, with all that is emitted of each event."""

    def __init__(self, ttl, corrects):
        self.step = VersionsStep(pl.DataFrame(schema=RUN), ttl, corrects)
        self.runs, self.last, self.emitted = [], BEFORE, {}

    def batch(self, rows, arrived=None):
        time = pl.when(pl.col(KIND) == EVENT_KIND).then(pl.min_horizontal(US, pl.lit(arrived)))
        frame = pl.DataFrame(rows, RUN, orient="row").with_columns(time.alias(CLOCK))
        now = self.step.clock(self.last, frame, BEFORE)
        done = self.step(self.runs, frame, self.last, now)
        self.runs, before, self.last = [*self.runs, done.changed], self.last, now
        if len(self.runs) > 3:
            self.runs = [self.step.lasting(merged(self.runs, self.step.by, whole=True), now)]
        for row in done.rows.to_dicts():
            home = row[ROW] and row[ROW]["home"]
            self.emitted.setdefault(row[EVENT]["n"], []).append(
                (home, row[TRUNCATED], row[CORRECTED], before)
            )


def hashed(key, *row):
    """Few hashes, so that different rows are neighbours."""
    return crc32(str(key).encode()) % 2 << 32 | crc32(str(row).encode()) % 3


def event(key, time, number, offset=0):
    hash_ = hashed(key, EVENT_KIND, time, offset)
    return (key, time, 0, offset, EVENT_KIND, {"n": number}, None, False, False, hash_)


def version(key, time, home, offset=0):
    row = None if home is None else {"home": home}
    hash_ = hashed(key, VERSION_KIND, time, offset)
    return (key, time, 0, offset, VERSION_KIND, None, row, False, False, hash_)


def make_log(seed, count=160):
    """Events without a place, many of equal times; versions that come late, some of them deletions."""
    random, log = Random(seed), []
    for number in range(count):
        key, time = random.choice((None, *"abc")), number // 3 - random.randrange(6)
        if random.random() < 0.6:
            log.append(("event", (key, time, number)))
        else:
            log.append(("version", (key, time, random.choice((None, f"home{number}")))))
    return log


def rows_of(log):
    return [event(*row) if kind == "event" else version(*row) for kind, row in log]


def answers(log):
    events, versions = ([row for kind, row in log if kind == wanted] for wanted in ("event", "version"))
    return reference.as_of(events, versions)


@pytest.mark.parametrize("seed", range(6))
def test_the_last_answer_of_each_event_is_the_row_of_its_time(seed):
    """Also of events that nothing distinguishes but when they came."""
    log, random, state = make_log(seed), Random(seed), State(ttl=1000, corrects=True)
    first = 0
    while first < len(log):
        size = random.randrange(1, 30)
        state.batch(rows_of(log[first : first + size]))
        first += size
    assert {number: emitted[-1][0] for number, emitted in state.emitted.items()} == answers(log)
    assert not any(truncated for emitted in state.emitted.values() for _, truncated, *_ in emitted)
    assert all([not emitted[0][2], *(each[2] for each in emitted[1:])] for emitted in state.emitted.values())


@pytest.mark.parametrize("seed", range(6))
def test_an_answer_is_right_or_says_that_it_may_not_be(seed):
    log, state = make_log(seed), State(ttl=1, corrects=False)
    for kind in ("version", "event"):  # all versions first: each answer can be the final one
        for row in log:
            if row[0] == kind:
                state.batch(rows_of([row]))
    expected = answers(log)
    for number, [(home, truncated, *_)] in state.emitted.items():
        assert home == expected[number] if not truncated else home is None
    assert any(truncated for [(_, truncated, *_)] in state.emitted.values())


def test_an_event_before_a_deletion_that_is_forgotten_says_so():
    state = State(ttl=10, corrects=False)
    state.batch([version("a", 0, "Vienna", 0), version("a", 4, None, 1), event("a", 100, 0)])
    state.batch([event("a", 101, 1), event("a", 2, 2), event("a", 95, 3)])
    assert {number: emitted[0][:2] for number, emitted in state.emitted.items()} == {
        0: (None, False),
        1: (None, False),
        2: (None, True),
        3: (None, False),
    }


def test_both_of_two_events_of_one_place_are_corrected_and_go():
    """As rows that were exploded, or have no place: in one batch or in two."""
    for batches in ([[0, 1]], [[0], [1]]):
        state = State(ttl=10, corrects=True)
        for numbers in batches:
            state.batch([event("a", 5, number) for number in numbers])
        state.batch([version("a", 3, "Graz")])
        assert {n: [each[0] for each in emitted] for n, emitted in state.emitted.items()} == {
            0: [None, "Graz"],
            1: [None, "Graz"],
        }
        state.batch([event("a", 100, 9)])
        state.batch([event("a", 101, 10), version("a", 4, "Linz")])
        assert [len(state.emitted[number]) for number in (0, 1)] == [2, 2]


def test_an_event_that_is_dated_far_ahead_ends_no_corrections():
    """All keys of a bucket have one clock: one that lies would make them forget."""
    state = State(ttl=100, corrects=True)
    state.batch([event("a", 10, 1)], arrived=10)
    state.batch([event("b", 10**15, 2)], arrived=11)
    state.batch([version("a", 5, "here")], arrived=12)
    assert [(home, truncated, corrected) for home, truncated, corrected, _ in state.emitted[1]] == [
        (None, False, False),
        ("here", False, True),
    ]
