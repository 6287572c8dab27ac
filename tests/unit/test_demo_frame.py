"""What demos share: traffic at a rate, and a report with a verdict."""

import itertools
import math
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from penstock.apps.demo import Comparison, Report, Work
from penstock.apps.demo.latency import Pace, latency_figures, percentile
from penstock.apps.demo.report import verdict
from penstock.apps.demo.sender import send_for, send_until
from penstock.cli import registered
from penstock.cli.main import app
from penstock.errors import InternalError


class Counting(Work):
    def __init__(self):
        self.sent = 0

    def send(self, count):
        self.sent += count

    def finish(self):
        pass

    def figures(self):
        return [("sent", str(self.sent), "events")]

    def report(self):
        return Report("all", self.figures())


def test_traffic_is_sent_at_its_rate():
    work = Counting()
    send_for(work, rate=1000, seconds=0.5)
    assert 300 < work.sent < 800


def test_what_never_comes_is_not_waited_for_for_ever():
    with pytest.raises(InternalError, match=r"the moon did not come within 0 s"):
        send_until(Counting(), 10, lambda: False, "the moon", 0.1)


def test_a_pause_is_not_made_up_for_in_one_go(monkeypatch):
    work, times = Counting(), itertools.chain([0.0], itertools.repeat(100.0))
    monkeypatch.setattr("penstock.apps.demo.sender.time.monotonic", lambda: next(times))
    looks = iter([False, True])
    send_until(work, 50, lambda: next(looks), "it", 1000)
    assert work.sent == 50


def test_a_report_claims_only_what_has_no_problems():
    assert str(verdict(Report("all 7 there", []))) == "✓ all 7 there; nothing is left running"
    assert str(verdict(Report("all 7 there", [], ["2 are missing", "1 is wrong"]))) == (
        "✗ 2 are missing; 1 is wrong"
    )


def test_demos_are_those_that_are_registered():
    shown = CliRunner().invoke(app, ["demo", "--help"]).output
    assert all(name in shown for name in ("bank", "fraud", "log"))


def test_a_registered_command_that_is_broken_is_named(monkeypatch):
    from importlib.metadata import EntryPoint

    broken = EntryPoint("moon", "penstock.no_such_module:app", "penstock.demos")
    monkeypatch.setattr(registered, "entry_points", lambda group: [broken])
    result = CliRunner().invoke(app, ["demo", "moon"])
    assert "the command 'moon'" in str(result.exception)


def test_results_are_compared_with_the_truth():
    found = Comparison.of({"a": 1.0, "b": 2.0, "c": 3.0}, [("a", 1.0 + 1e-12), ("b", 2.0)], math.isclose)
    assert found == Comparison(due=3, lost=1, duplicate=0, wrong=0, unexpected=0)
    assert found.problems == ["1 of 3 results lost"]
    assert found.figures("visits") == [("visits", "3", "due; 1 lost, 0 duplicate, 0 wrong, 0 not due")]
    assert Comparison.of({"a": 1}, [("a", 1)]).problems == []


def test_a_comparison_of_nothing_is_a_problem():
    assert Comparison.of({}, []).problems


def test_a_percentile_is_in_milliseconds():
    assert percentile([0.001 * number for number in range(1, 101)], 0.99) == pytest.approx(100)
    assert percentile([0.5], 1.0) == 500
    assert percentile([], 0.99) is None
    assert latency_figures([0.25, 20.0], "to a result")[1][2] == "of the same 2; the longest 20 s"


def test_the_pace_knows_when_a_time_was_reached():
    noon, pace = datetime(2026, 1, 1, 12, tzinfo=UTC), Pace()
    for hours, moment in ((0, 10.0), (2, 11.0), (1, 12.0), (3, 13.0)):  # one comes late
        pace.note(noon + timedelta(hours=hours), moment)
    assert pace.reached(noon + timedelta(hours=1)) == 11.0
    assert pace.reached(noon + timedelta(hours=3)) == 13.0
    assert pace.reached(noon + timedelta(hours=4)) is None


def test_a_work_closes_what_it_has_opened_and_knows_its_steady_time():
    closed = []

    class Opening(Counting):
        def __init__(self):
            Work.__init__(self, settings=None)

    with Opening() as work:
        work.opened.callback(closed.append, "it")
        assert closed == []
        assert not work.is_steady(5.0)
        work.began |= {"steady": 4.0, "kill": 6.0}
        assert [work.is_steady(moment) for moment in (3.0, 4.0, 5.0, 6.0)] == [False, True, True, False]
    assert closed == ["it"]
