"""The ranking of all time against plain Python: what is emitted of places adds up to the ranking."""

from collections import defaultdict
from random import Random

import polars as pl
import pytest

from penstock.errors import FlowError
from penstock.process import ranking
from penstock.process.ranking.top import Ranks
from penstock.process.windows import agg

SCHEMA = {"key": pl.String, "_us": pl.Int64, "_partition": pl.Int32, "_offset": pl.Int64, "points": pl.Int64}


def rows(made):
    return pl.DataFrame([(key, 0, 0, 0, points) for key, points in made], SCHEMA, orient="row")


def ranked(totals, count):
    """The ranking in plain Python: place, key, rank and points."""
    best = sorted(totals.items(), key=lambda item: (item[1], item[0] is not None, item[0] or ""))[::-1]
    points = sorted(totals.values(), reverse=True)
    return {
        place: (key, points.index(total) + 1, total) for place, (key, total) in enumerate(best[:count], 1)
    }


@pytest.mark.parametrize("count", [1, 3, 50])
def test_what_is_emitted_adds_up_to_the_ranking(count):
    for seed in range(5):
        random, totals, shown, kept = Random(seed), defaultdict(int), {}, None
        engine = Ranks(("key",), {"points": agg.sum("points")}, 0, count, "points")
        for _ in range(30):
            names = [None, *"abcdefghij"]
            made = [(random.choice(names), random.randrange(-5, 9)) for _ in range(random.choice((0, 1, 20)))]
            taken = engine.take(kept, rows(made), 0, 0)
            kept = taken.kept
            for key, points in made:
                totals[key] += points
            for row in engine.finished(taken.results).iter_rows(named=True):
                emitted = (row["key"], row["rank"], row["points"])
                shown[row["place"]] = emitted
            assert shown == ranked(totals, count), seed
            assert taken.results.height <= count
            assert made or taken.results.is_empty()


def test_of_what_only_grows_the_best_are_enough():
    for seed in range(5):
        random, totals, kept = Random(seed), defaultdict(int), None
        engine = Ranks(("key",), {"points": agg.max("points")}, 0, 4, "points", keep=5)
        for _ in range(40):
            made = []
            for key in random.choices("abcdefghijklmnop", k=random.choice((0, 1, 12))):
                totals[key] += random.randrange(3)
                made.append((key, totals[key]))
            taken = engine.take(kept, rows(made), 0, 0)
            kept = taken.kept
            assert kept.height <= 5
            shown = engine._top(kept).iter_rows(named=True)
            assert {row["place"]: (row["key"], row["rank"], row["points"]) for row in shown} == ranked(
                totals, 4
            )


def test_a_ranking_that_makes_no_sense_is_refused():
    with pytest.raises(FlowError, match="keeps 2 keys for 3 places"):
        ranking.top(3, "points", by="key", keep=2, points=agg.max("points"))
    with pytest.raises(FlowError, match="could not be added to"):
        ranking.top(3, "points", by="key", keep=9, points=agg.sum("points"))
    with pytest.raises(FlowError, match="at least 1"):
        ranking.top(0, "points", by="key", points=agg.sum("points"))
    with pytest.raises(FlowError, match="none of its values"):
        ranking.top(3, "score", by="key", points=agg.sum("points"))
    with pytest.raises(FlowError, match="column of every result"):
        ranking.top(3, "rank", by="key", rank=agg.sum("points"))
