"""Functions over keyed state, batch by batch, against dictionaries: state that ends, timers, bad answers."""

from datetime import UTC, datetime, timedelta
from random import Random

import polars as pl
import pytest

from penstock.errors import FlowError
from penstock.process.keyed.function import KeyedFunction
from penstock.process.keyed.step import KeyedStep
from penstock.process.state.runs import HASH, first_to_merge, merged
from penstock.process.state.step import BEFORE

BEGIN, SECOND = datetime(2026, 3, 29, tzinfo=UTC), 1_000_000
START = int(BEGIN.timestamp()) * SECOND
TIME = pl.Datetime("us", "UTC")
ROWS = {"card": pl.String, "n": pl.Int64, "at": TIME}
STATE = pl.DataFrame(schema={"card": pl.String, "seen": pl.Int64, "closes": TIME})
RESULTS = pl.DataFrame(schema={"card": pl.String, "n": pl.Int64, "seen": pl.Int64})


def visits(rows, state):
    """Emit for each row how many came with it, and for a key that is due and has no row; forget that one."""
    known = rows.join(state, on="card", how="left", nulls_equal=True, maintain_order="left")
    before = pl.col("seen").fill_null(0)
    emitted = known.select("card", "n", before + pl.int_range(1, pl.len() + 1).over("card"))
    sums = rows.group_by("card").agg(pl.len().alias("more"), pl.col("at").max())
    after = state.join(sums, on="card", how="left", nulls_equal=True)
    over = pl.col("due") & pl.col("more").is_null()
    closes = pl.max_horizontal("closes", pl.col("at") + timedelta(seconds=20))
    kept = after.filter(~over).select("card", before + pl.col("more").fill_null(0), closes=closes)
    closed = after.filter(over).select("card", pl.lit(None, pl.Int64).alias("n"), "seen")
    return kept, pl.concat([emitted, closed], how="vertical_relaxed")


class Reference:
    """The same, key by key."""

    def __init__(self, ttl):
        self.ttl, self.known = ttl, {}

    def take(self, batch, last, now):
        first = {card: at for card, _, at in reversed(batch)}
        emitted = []
        for card, (seen, closes, at) in list(self.known.items()):
            goes_on = card in first and (self.ttl is None or first[card] <= at + self.ttl)
            if not goes_on and last < closes <= now and (self.ttl is None or closes <= at + self.ttl):
                emitted.append((card, None, seen))
                del self.known[card]
        for card, n, at in batch:
            seen, closes, latest = self.known.get(card, (0, BEFORE, BEFORE))
            if self.ttl is not None and at > latest + self.ttl:
                seen, closes = 0, BEFORE
            emitted.append((card, n, seen + 1))
            self.known[card] = (seen + 1, max(closes, at + 20 * SECOND), max(at, latest))
        for card in first:
            seen, closes, at = self.known[card]
            self.known[card] = (seen, max(closes, now + 1), at)
        return emitted


def rows_of(batch, first):
    made = [(card, n, BEGIN + timedelta(microseconds=at - START)) for card, n, at in batch]
    frame = pl.DataFrame(made, ROWS, orient="row")
    places = [(len(str(card)), at, 0, first + number) for number, (card, _, at) in enumerate(batch)]
    order = pl.DataFrame(
        places, {HASH: pl.Int64, "_us": pl.Int64, "_partition": pl.Int32, "_offset": pl.Int64}, orient="row"
    )
    return frame.hstack(order).sample(fraction=1, shuffle=True, seed=first)  # the step finds the log's order


def step_of(function=visits, state=STATE, returns=RESULTS, frames="polars", **more):
    return KeyedStep(KeyedFunction(function, ("card",), state, returns, frames), **more)


@pytest.mark.parametrize("ttl", [None, 15, 40])
@pytest.mark.parametrize("seed", range(6))
def test_batches_against_a_dictionary(seed, ttl):
    random, number, clock = Random(seed), 0, 0
    length = None if ttl is None else ttl * SECOND
    step, reference = step_of(ttl=length, timer="closes"), Reference(length)
    runs, last = [], BEFORE
    for _ in range(40):
        clock += random.randrange(30)
        batch = []
        for _ in range(random.randrange(12)):
            number += 1
            at = START + (clock - random.choice((0, 0, 5, 30 if ttl is None else 9, -60))) * SECOND
            batch.append((random.choice((None, "a", "b", "c", "d")), number, at))
        now = START + (clock - 10) * SECOND
        done = step(runs, rows_of(batch, number), last, now)
        expected = reference.take(batch, last, now)
        assert sorted(done.rows.rows(), key=str) == sorted(expected, key=str)
        runs.append(done.changed)
        first = first_to_merge([run.height for run in runs])
        rows = merged(runs[first:], ["card"], whole=first == 0)
        runs[first:] = [rows if first else step.lasting(rows, now)]
        last = now


def test_a_key_that_is_not_kept_begins_anew():
    def odd(rows, state):
        emitted = rows.join(state, on="card").select("card", "n", pl.col("seen").fill_null(0))
        kept = state.with_columns(pl.col("seen").fill_null(0) + 1).filter(pl.col("seen") < 2)
        return kept, emitted

    step, runs, emitted = step_of(odd), [], []
    for number in range(5):
        done = step(runs, rows_of([("a", number, START)], number), BEFORE, BEFORE)
        runs.append(done.changed)
        emitted += done.rows["seen"].to_list()
    assert emitted == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("frames", ["polars", "pandas", "pyarrow"])
def test_frames_of_the_kind_that_is_asked_for(frames):
    kinds = []

    def same(rows, state):
        kinds.append(type(rows).__module__.split(".")[0])
        return state, rows

    returns = pl.DataFrame(schema=ROWS)
    done = step_of(same, returns=returns, frames=frames)([], rows_of([("a", 1, START)], 0), BEFORE, BEFORE)
    assert kinds == [frames]
    assert done.rows.rows() == [("a", 1, BEGIN)]
    assert done.changed["card"].to_list() == ["a"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda rows, state: state, "returned DataFrame; return two frames"),
        (lambda rows, state: (state, rows.select("card")), "gave no column 'n', but card"),
        (lambda rows, state: (state.drop("seen"), rows), "gave no column 'seen'"),
        (lambda rows, state: (pl.concat([state, state]), rows), "{'card': 'a'} has state twice"),
        (lambda rows, state: (state.with_columns(card=pl.lit("z")), rows), "{'card': 'z'} was not asked for"),
    ],
)
def test_a_bad_answer_is_named(answer, message):
    step = step_of(answer, returns=pl.DataFrame(schema=ROWS))
    with pytest.raises(FlowError, match=message):
        step([], rows_of([("a", 1, START)], 0), BEFORE, BEFORE)
