"""Patterns that end with what did not come, in batches of any size, against a reference that tries all."""

from random import Random

import polars as pl
import pytest
from tests.reference import patterns as reference

from penstock.errors import FlowError
from penstock.process import patterns
from penstock.process.patterns import Pattern
from penstock.process.patterns.absent import AbsentStep
from penstock.process.patterns.chains import Way
from penstock.process.state.step import BEFORE, FOREVER

A, B, C, D = 1, 2, 4, 8
KINDS = {"a": A, "b": B, "c": C, "d": D}
WAYS = {
    "one": [((A, 0),)],
    "sequence": [((A, 0), (B, 0))],
    "without": [((A, 0), (B, D))],
    "ways": [((A, 0), (A, 0)), ((B, 0), (A, 0))],
}
EVENT = pl.Struct({"n": pl.Int64})
ROWS = {
    "user": pl.String,
    "_us": pl.Int64,
    "_partition": pl.Int32,
    "_offset": pl.Int64,
    "_fits": pl.Int64,
    "event": EVENT,
}
WITHIN, LASTING, LATE = 12, 7, 5


def make_log(seed, events=250):
    """Users of whom one has no name, times that go back a little, many of them equal, some before 1970."""
    random = Random(seed)
    return [
        (
            random.choice((None, "u", "v", "w")),
            number // 3 - 20 - random.randrange(LATE),
            random.choice("abcd"),
        )
        for number in range(events)
    ]


def frame(log, first, last, placed):
    """Rows of the log; without places they are distinguished by when they came."""
    rows = [
        (user, time, 0, number if placed else 0, KINDS[kind], {"n": number})
        for number, (user, time, kind) in enumerate(log)
    ]
    return pl.DataFrame(rows[first:last], ROWS, orient="row")


def run(step, log, sizes, placed=True):
    """The watermark is as far behind as events are late at most."""
    emitted, kept, first, mark = {}, None, 0, BEFORE
    while first < len(log):
        size = next(sizes)
        rows = frame(log, first, first + size, placed)
        now = max(mark, max(time for _, time, _ in log[:first] or [(None, BEFORE, None)]) - LATE)
        done = step(kept, rows, mark, now)
        assert done.timer is None or done.timer > now
        emitted |= taken(done.rows, emitted)
        kept, first, mark = done.kept, first + size, now
    done = step(kept, frame(log, 0, 0, placed), mark, FOREVER)
    assert (done.kept.height, done.timer) == (0, None)
    return emitted | taken(done.rows, emitted)


def taken(rows, emitted):
    found = {row["event"]["n"]: [each["n"] for each in row["matched"]] for row in rows.to_dicts()}
    assert len({**emitted, **found}) == len(emitted) + rows.height
    assert not rows["truncated"].any()
    return found


def expected(ways, log, strict):
    def fits(bits):
        return (lambda event: KINDS[event[2]] & bits != 0) if bits else None

    steps = [[(fits(one), fits(unless), False) for one, unless in way] for way in ways]
    found = {}
    for user in {user for user, *_ in log}:
        own = sorted((time, number, kind) for number, (of, time, kind) in enumerate(log) if of == user)
        ended = reference.not_followed(steps, own, WITHIN, LASTING, fits(C), strict)
        found |= {own[end][1]: [[own[n][1] for n in match] for match in all_] for end, all_ in ended.items()}
    return found


def absent(name, strict=False):
    ways = tuple(Way(steps, WITHIN, strict) for steps in WAYS[name])
    return AbsentStep(("user",), ways, C, LASTING)


@pytest.mark.parametrize("strict", [False, True], ids=["skipping", "strict"])
@pytest.mark.parametrize("name", WAYS)
def test_a_match_is_emitted_when_nothing_can_follow_it_any_more(name, strict):
    ends = 0
    for seed in range(4):
        log, random = make_log(seed), Random(seed)
        sizes = iter([random.randrange(1, 60) for _ in log])
        emitted = run(absent(name, strict), log, sizes, placed=seed % 2)
        possible = expected(WAYS[name], log, strict)
        assert emitted.keys() == possible.keys()
        assert all(match in possible[number] for number, match in emitted.items())
        ends += len(emitted)
    assert ends > 3


def test_cuts_make_no_difference():
    log = make_log(seed=9)
    step = absent("without")
    assert run(step, log, iter(lambda: 1, None)) == run(step, log, iter(lambda: 400, None))


def test_what_comes_exactly_when_the_time_is_over_is_too_late_to_count():
    step = absent("one")
    for time, stays_away in ((LASTING - 1, False), (LASTING, True)):
        assert (0 in run(step, [("u", 0, "a"), ("u", time, "c")], iter([2]))) == stays_away


def test_an_event_that_is_later_than_its_decision_is_emitted_and_says_so():
    step, log = absent("one"), [("u", 100, "d"), ("u", 50, "a")]
    kept = step(None, frame(log, 0, 1, True), BEFORE, 95).kept
    (row,) = step(kept, frame(log, 1, 2, True), 95, 95).rows.to_dicts()
    assert (row["event"]["n"], row["truncated"]) == (1, True)


def test_what_a_pattern_can_not_say_is_refused():
    unpaid = Pattern.one("a").not_followed_by("b", within="1 minute")
    with pytest.raises(FlowError, match="goes on after what must not come"):
        unpaid.then("c")
    with pytest.raises(FlowError, match="alternatives ends with what must not come"):
        Pattern.any(unpaid, "c")
    with pytest.raises(FlowError, match="uses nothing up"):
        patterns.match(unpaid, by="user", time="at", within="1 minute", overlap=False)
    with pytest.raises(FlowError, match="bounded keys have none"):
        patterns.match(unpaid, by="user", time="at", within="1 minute", bounded_keys=True)
    with pytest.raises(FlowError, match="'event' is a column of every match"):
        patterns.match(Pattern.one("a"), by="event", time="at", within="1 minute")
    assert Pattern.one("z").then(unpaid).absence == unpaid.absence
