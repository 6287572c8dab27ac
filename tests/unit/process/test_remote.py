"""A database that is asked: for many keys at once, once for each, and not too often."""

import time

import polars as pl
import pyarrow as pa
import pytest

from penstock.errors import FlowError
from penstock.process.joins.remote import _JOINS, Lookup, _asked, _known

LIKE = pl.DataFrame(schema={"card": pl.String, "home": pl.String})
RESULT = pa.schema(
    {"card": pa.string(), "row": pa.struct({"card": pa.string(), "home": pa.string()}.items())}
)


class Asked:
    """A database that knows what it was asked."""

    def __init__(self, rows=("a", "b")):
        self.questions, self.rows = [], rows

    def __call__(self, keys):
        self.questions.append((time.monotonic(), sorted(keys)))
        known = [key for key in self.rows if key in keys]
        return pl.DataFrame(
            {"home": [f"home of {key}" for key in known], "card": known}, {"home": str, "card": str}
        )


def lookup(asked, *, ttl=60.0, interval=0.0, at_most=100):
    return Lookup(asked, "card", "row", LIKE, RESULT, ttl, interval, at_most)


def found(work, *cards):
    batch = pa.record_batch([pa.array(cards, pa.string())], names=["card"])
    rows = [row for each in work(iter([batch])) for row in each.to_pylist()]
    return [(row["card"], row["row"] and row["row"]["home"]) for row in rows]


def test_each_key_is_asked_for_once_also_if_there_is_no_row():
    asked = Asked()
    work = lookup(asked)
    wanted = [("a", "home of a"), (None, None), ("c", None), ("a", "home of a")]
    assert found(work, "a", None, "c", "a") == wanted
    assert found(work, "a", None, "c", "a") == wanted
    assert found(work, "b", "a") == [("b", "home of b"), ("a", "home of a")]
    assert [keys for _, keys in asked.questions] == [["a", "c"], ["b"]]


def test_what_is_old_is_asked_for_again_and_only_so_much_is_remembered():
    asked = Asked()
    old = lookup(asked, ttl=0.0)
    found(old, "a")
    found(old, "a")
    assert len(asked.questions) == 2
    short = lookup(asked, at_most=1)
    found(short, "a", "b")
    found(short, "a", "b")
    assert len(asked.questions[3][1]) == 1


def test_it_waits_between_questions_and_asks_for_a_thousand_keys_at_most():
    asked = Asked()
    found(lookup(asked, interval=0.1), *(f"card{number}" for number in range(2500)))
    assert [len(keys) for _, keys in asked.questions] == [1000, 1000, 500]
    times = [when for when, _ in asked.questions]
    assert times[2] - times[0] >= 0.2


def test_an_answer_that_does_not_fit_is_refused():
    with pytest.raises(FlowError, match="more than one row for 'a'"):
        found(lookup(Asked(rows=("a", "a"))), "a")
    with pytest.raises(FlowError, match="no column 'card', but house"):
        found(lookup(lambda keys: pl.DataFrame({"house": keys})), "a")


def test_a_worker_that_outlives_many_plans_forgets_the_old_ones():
    first = lookup(Asked())
    for work in (first, *(lookup(Asked()) for _ in range(40))):
        found(work, "a")
        found(first, "a")
    assert len(_known) == len(_asked) == _JOINS
    assert [len(first.ask.questions), first.id in _known] == [1, True]
