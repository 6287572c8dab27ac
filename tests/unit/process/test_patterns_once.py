"""Matches that share no events, in batches of any size, against a reference that tries everything."""

from random import Random

import polars as pl
import pytest
from tests.reference import patterns as reference

from penstock.process.patterns.chains import Way
from penstock.process.patterns.once import CLOCK, PARTS, Once

A, B, C, D = 1, 2, 4, 8
KINDS = {"a": A, "b": B, "c": C, "d": D}
WAYS = {
    "sequence": [((A, 0), (B, 0), (C, 0))],
    "times": [((A, 0), (A, 0), (A, 0), (B, 0))],
    "without": [((A, 0), (B, D), (C, 0))],
    "never between": [((A, 0), (A, 0), (C, B))],
    "either": [((A | B, 0), (B | C, 0), (B, 0))],
    "ways": [((A, 0), (B, 0), (A, 0)), ((C, 0), (D, 0), (A, 0))],
}
EVENT = pl.Struct({"n": pl.Int64})
ROWS = {"user": pl.String, "event": EVENT, "_fits": pl.Int64, "_us_of_event": pl.Int64}
STATE = {
    "user": pl.String,
    PARTS: pl.List(pl.Struct({"part": pl.Int32, "_us_of_event": pl.Int64, "event": EVENT})),
    CLOCK: pl.Int64,
}


def make_log(seed, events=400):
    """Users, times that may go back, and kinds; a null user is one, too."""
    random = Random(seed)
    users = [None, *(f"u{number}" for number in range(8))]
    return [
        (random.choice(users), number // 2 - random.choice((0, 0, 3)), random.choice("abcd"))
        for number in range(events)
    ]


def run(once, log, sizes):
    kept, emitted, first = {}, {}, 0
    while first < len(log):
        batch = list(enumerate(log))[first : first + next(sizes)]
        first += len(batch)
        rows = [(user, {"n": n}, KINDS[kind], time) for n, (user, time, kind) in batch]
        users = {user for _, (user, *_) in batch}
        state = pl.DataFrame([(user, *kept.get(user, (None, None))) for user in users], STATE, orient="row")
        after, found = once(pl.DataFrame(rows, ROWS, orient="row"), state)
        kept = {user: parts for user, parts in kept.items() if user not in users}
        kept |= {user: known for user, *known in after.select("user", PARTS, CLOCK).rows()}
        emitted |= {row["event"]["n"]: [each["n"] for each in row["matched"]] for row in found.to_dicts()}
    return emitted


def expected(ways, log, within, strict):
    """Where matches end, and all that they could be, of what came since the last one."""
    steps = [
        [
            (
                lambda event, bits=fits: KINDS[event[1][2]] & bits != 0,
                (lambda event, bits=unless: KINDS[event[1][2]] & bits != 0) if unless else None,
                False,
            )
            for fits, unless in way
        ]
        for way in ways
    ]
    since, found, clocks = {}, {}, {}
    for number, (user, dated, kind) in enumerate(log):
        events, time = since.setdefault(user, []), max(dated, clocks.get(user, dated))
        clocks[user] = time
        events.append((number, (user, time, kind)))
        possible = [
            [events[place][0] for place in match]
            for match in reference.matches(steps, events, strict)
            if all(events[place][1][1] > time - within for place in match)
        ]
        if possible:
            found[number], since[user] = possible, []
    return found


@pytest.mark.parametrize("strict", [False, True], ids=["skipping", "strict"])
@pytest.mark.parametrize("name", WAYS)
def test_matches_end_where_they_can_and_share_nothing(name, strict):
    log, within = make_log(seed=len(name)), 25
    once = Once(("user",), tuple(Way(steps, within, strict) for steps in WAYS[name]))
    random = Random(1)
    sizes = iter(lambda: random.randrange(1, 60), None)
    emitted, possible = run(once, log, sizes), expected(WAYS[name], log, within, strict)
    assert emitted.keys() == possible.keys()
    assert all(match in possible[number] for number, match in emitted.items())
    assert emitted
    used = [number for match in emitted.values() for number in match]
    assert len(used) == len(set(used))


def test_cuts_make_no_difference():
    log = make_log(seed=9)
    once = Once(("user",), (Way(WAYS["without"][0], 30, strict=False),))
    assert run(once, log, iter(lambda: 1, None)) == run(once, log, iter(lambda: 400, None))
