"""The search for what is behind a result: what differs keeps its value while events are left out."""

from datetime import UTC, datetime, timedelta
from unittest.mock import MagicMock

import pytest
from pyspark.sql import Row

from penstock.ops.why.answer import Made
from penstock.ops.why.asking import _answer
from penstock.ops.why.lookup import Looked
from penstock.ops.why.search import Found, Search
from penstock.ops.why.wanted import Nearest, Wanted

ROW = {"account": "a1", "owner": "ada", "currency": "EUR", "status": "open", "total": 100}
AGREES = ("owner", "currency", "status")
AMOUNTS = (5, 0, 7, 0, 9)  # what the log still has: the row was made of more


class Events:
    """Candidates, all of one key."""

    candidates = AMOUNTS

    def groups(self, numbers):
        return [list(numbers)]

    def events(self, numbers):
        return tuple(numbers)


START = datetime(2026, 1, 1, 12, tzinfo=UTC)
END = START + timedelta(seconds=10)


@pytest.fixture
def results(monkeypatch):
    """Recomputed results that say when the window ended; conditions on them are not looked at."""
    for each in ("F", "quoted"):
        monkeypatch.setattr(f"penstock.ops.why.wanted.{each}", MagicMock())
    made = MagicMock(columns=["product", "start", "end", "rows"])
    made.where.return_value = made
    made.select.return_value.orderBy.return_value.limit.return_value.collect.return_value = [Row(end=END)]
    return made


def window(**more):
    values = {"product": "lamp", "start": START, "rows": 3, **more}
    return Wanted(values, ("product", "start"))


def test_a_target_that_keeps_only_the_start_of_windows_learns_the_end_from_the_flow(results):
    kept = window()
    assert (kept.lacks_end, kept.window()) == (True, None)
    assert kept.ended(results).window() == (START, END)
    results.columns.remove("end")
    assert kept.ended(results).window() is None, "the flow leaves it out, too"


@pytest.mark.parametrize(
    "wanted",
    [
        window(end=END),
        window(start="Monday"),
        Wanted({"product": "lamp", "start": START}, ("product",)),
    ],
)
def test_what_says_its_end_or_is_of_no_window_is_not_computed_for_it(wanted):
    assert not wanted.lacks_end


def test_the_end_is_looked_for_before_the_events_are(monkeypatch, results):
    made = Search(lambda **_: results, {}, {}, {}, window(), most=60)
    looked = []
    monkeypatch.setattr("penstock.ops.why.search.reaches", lambda wanted, *_: looked.append(wanted) or ())
    assert made.found() is None
    assert looked[0].window() == (START, END)


def search(nearest):
    made = Search(None, {}, {}, {}, Wanted(ROW, ("account",)), most=60)
    made.nearest = lambda _, numbers: nearest(numbers)
    return made


def running(numbers):
    """The row that comes of some of the events."""
    total = sum(AMOUNTS[each] for each in numbers)
    return Nearest(("total",), AGREES, -1, {"total": total}) if numbers else None


def reduced(nearest):
    every = list(range(len(AMOUNTS)))
    known = nearest(every)
    return search(nearest)._reduced(Found(Events(), every, known, "events of its key"), known)


def answer(found):
    return _answer("accounts", Looked(ROW), Wanted(ROW, ("account",)), Made("bank.accounts"), found, 9)


def test_a_running_row_whose_oldest_events_are_gone_is_not_proved():
    found = answer(reduced(running))
    assert (found.proved, found.but_for, found.instead) == (False, ("total",), {"total": 21})
    assert found.events == (0, 2, 4), "those that the recomputed total is of, and none that adds nothing"
    assert found.compared == ("account", *AGREES)


def test_a_row_that_is_the_same_is_proved():
    found = answer(reduced(lambda numbers: Nearest((), (*AGREES, "total"), None) if 2 in numbers else None))
    assert (found.proved, found.but_for, found.instead, found.events) == (True, (), {}, (2,))
    assert found.minimal


@pytest.mark.parametrize("agrees", [(), ("owner",)])
def test_a_row_of_which_most_differs_is_neither_reduced_nor_near(agrees):
    found = answer(reduced(lambda _: Nearest(("status", "total"), agrees, -1, {"status": "x", "total": 1})))
    assert (found.proved, found.but_for, found.instead) == (False, (), {})
    assert found.events == (0, 1, 2, 3, 4)


def test_differences_are_alike_only_by_the_same_values():
    near = Nearest(("total",), AGREES, -1, {"total": 0.3})
    assert near.is_like(Nearest(("total",), AGREES, -1, {"total": 0.1 + 0.2}))
    assert not near.is_like(Nearest(("total",), AGREES, -1, {"total": 0.4}))
    assert not near.is_like(Nearest((), (*AGREES, "total"), None))
