"""Keys that rise, against plain Python, however rows and watermarks are cut into steps."""

from collections import Counter
from random import Random

import polars as pl
import pytest

from penstock.errors import FlowError
from penstock.process import ranking
from penstock.process.ranking.rises import Rises
from penstock.process.state.step import BEFORE, FOREVER

SCHEMA = {"key": pl.String, "_us": pl.Int64}
ENGINE = Rises(("key",), 3, window=20, every=5, baseline=60, floor=1.5)
SPEC = {"by": "key", "time": "at", "within": "1 minute", "every": "5 seconds", "baseline": "1 hour"}


def rows(made):
    return pl.DataFrame(made, SCHEMA, orient="row")


def ranked(made, engine=ENGINE):
    """All rankings in plain Python: by end and place, the key with its uses, usual and growth."""
    found = {}
    for end in sorted({at // 5 * 5 + 5 * hop for _, at in made for hop in range(1, 5)}):
        start, before = end - engine.window, end - engine.window - engine.baseline
        uses = Counter(key for key, at in made if start <= at < end)
        usual = Counter(key for key, at in made if before <= at < start)
        first = min((at // 5 * 5 for _, at in made if before <= at < start), default=start - 5)
        values = {key: usual[key] * engine.window / (start - first) for key in uses}
        order = [(uses[key] / max(values[key], engine.floor), uses[key], key) for key in uses]
        for place, (growth, count, key) in enumerate(sorted(order, reverse=True)[: engine.count], 1):
            found[end, place] = key, count, pytest.approx(values[key]), pytest.approx(growth)
    return found


def emitted(frame):
    names = ("key", "uses", "usual", "growth")
    return {
        (row["end"], row["place"]): tuple(row[name] for name in names) for row in frame.iter_rows(named=True)
    }


def whole(made):
    """What a batch query does: all rows at once, then time ends."""
    taken = ENGINE(None, ENGINE.folded(rows(made)), BEFORE, BEFORE)
    assert taken.rows.is_empty()
    return ENGINE(taken.kept, ENGINE.folded(rows([])), BEFORE, FOREVER)


def test_a_batch_gives_what_plain_python_gives():
    for seed in range(5):
        random = Random(seed)
        made = [(random.choice("aaabcdefg"), random.randrange(400)) for _ in range(200)]
        ended = whole(made)
        assert emitted(ended.rows) == ranked(made)
        assert ended.kept.is_empty()


def test_so_do_steps_with_disorder_within_the_watermark():
    for seed in range(5):
        random = Random(seed)
        made = [(random.choice("abcdefg"), time + random.randrange(10)) for time in range(0, 600, 2)]
        shown, kept, last, place = {}, None, 0, 0
        while batch := made[place : place + random.randrange(1, 40)]:
            new, kept, last = step(kept, batch, last)
            assert not shown.keys() & new.keys()
            shown, place = shown | new, place + len(batch)
        shown |= emitted(ENGINE(kept, ENGINE.folded(rows([])), last, 10_000).rows)
        assert shown == ranked(made)


def step(kept, made, last):
    now = max(last, max(at for _, at in made) - 10)
    stepped = ENGINE(kept, ENGINE.folded(rows(made)), last, now)
    assert stepped.dropped == 0
    assert stepped.timer is None or stepped.timer > now
    return emitted(stepped.rows), stepped.kept, now


def test_what_is_too_late_is_counted():
    first = ENGINE(None, ENGINE.folded(rows([("a", 1000)])), 0, 990)
    stepped = ENGINE(first.kept, ENGINE.folded(rows([("a", 5), ("a", 6), ("b", None), ("a", 985)])), 990, 995)
    assert stepped.dropped == 3
    assert [*emitted(stepped.rows)] == [(995, 1)]  # the last row is in a window that was open


def test_state_goes_with_the_watermark():
    stepped = ENGINE(None, ENGINE.folded(rows([("a", 0)])), 0, 3)
    assert stepped.timer == 5
    stepped = ENGINE(stepped.kept, ENGINE.folded(rows([])), 3, 5)
    assert ([*emitted(stepped.rows)], stepped.timer) == ([(5, 1)], 10)
    stepped = ENGINE(stepped.kept, ENGINE.folded(rows([])), 5, 20)
    assert ([*emitted(stepped.rows)], stepped.timer) == ([(10, 1), (15, 1), (20, 1)], 80)
    stepped = ENGINE(stepped.kept, ENGINE.folded(rows([])), 20, 80)
    assert (stepped.kept.height, stepped.timer, stepped.rows.height) == (0, None, 0)


def test_a_key_may_be_null():
    ended = whole([(None, 0), (None, 1), ("a", 1)])
    assert [row["key"] for row in ended.rows.iter_rows(named=True)][:2] == [None, "a"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"count": 0}, "at least 1"),
        ({"baseline": "61 seconds"}, "multiples"),
        ({"within": "7 seconds"}, "multiples"),
        ({"floor": 0}, "more than 0"),
        ({"by": "uses"}, "column of every result"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, message):
    given = {"count": 10, "watermark": "1 second"} | SPEC | wrong
    with pytest.raises(FlowError, match=message):
        ranking.rising(given.pop("count"), **given)
