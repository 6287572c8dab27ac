"""The course of a run, with flows and a listener that do as they are asked to."""

import pytest

from penstock.apps.fraud.demo import _Run
from penstock.apps.fraud.plan import Plan
from penstock.apps.fraud.sender import Sender
from penstock.apps.fraud.status import Status
from penstock.apps.fraud.traffic import Traffic
from penstock.errors import InternalError
from penstock.settings import Settings

PLAN = Plan(rate=100, seconds=0.1, after=0, settled=0, settled_within=0.1, caught_up_within=0.2)


class Flows:
    """A driver whose flows emit an alert whenever somebody looks, unless they are dead."""

    def __init__(self, alive=True):
        self.alive, self.done = alive, []

    def start(self):
        self.done.append("start")

    def kill(self):
        self.done.append("kill")

    def last_words(self):
        return "out of memory"


class Listener:
    heard, hears_both = 1, True

    def __init__(self, catches_up=True):
        self.up_to_date, self._new = catches_up, 0

    @property
    def new(self):
        self._new += 1
        return self._new

    def keeps_up(self, seconds):
        return self.up_to_date


class Producer:
    def send(self, topic, event):
        pass


def run(driver, listener):
    status, sender = Status(), Sender(Producer(), Traffic(honest=10, scenarios=2))
    return status, _Run(Settings(), PLAN, status, driver, listener, sender).measure()


def test_the_flows_are_started_killed_and_started_again():
    driver = Flows()
    status, report = run(driver, Listener())
    assert driver.done == ["start", "kill", "start"]
    assert [*status.entered] == ["start", "steady", "kill"]
    assert report.steady_until - report.steady_since >= PLAN.seconds
    assert report.caught_up_seconds >= report.recovered_seconds > 0
    assert status.note.startswith("without delay again")


def test_flows_that_do_not_catch_up_are_not_waited_for():
    status, report = run(Flows(), Listener(catches_up=False))
    assert report.caught_up_seconds is None
    assert status.seconds < 5


def test_flows_that_end_by_themselves_are_an_error_with_their_last_words():
    with pytest.raises(InternalError, match="ended before the first alert: out of memory"):
        run(Flows(alive=False), Listener())
