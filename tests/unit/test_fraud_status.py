"""The status of a run: what a screen shows of it, at a clock of our own."""

import time
from collections import deque
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from penstock.apps.fraud.events import Alert
from penstock.apps.fraud.status import STAGES, Figures, Status


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def status(clock):
    return Status(clock)


def heard(took, ago=0.0, card="card-1"):
    alert = Alert(card, "user", "fast", ["t1", "t2"], datetime.now(UTC), id=card)
    return time.time() - ago, took, alert


def watched(status, sent=0, alerts=(), repeated=0):
    traffic = SimpleNamespace(sent=sent)
    listener = SimpleNamespace(new=len(alerts), heard=len(alerts) + repeated, recent=deque(alerts))
    status.watch(traffic, listener, lambda: 7)
    return traffic


def test_before_anything_runs_there_are_no_figures(status):
    assert status.sample() == Figures()
    assert status.latest == []
    assert status.stage == ""


def test_a_stage_lasts_until_the_next_one_begins(status, clock):
    status.enter("services")
    clock.now += 4
    status.enter("model", "from the past")
    clock.now += 10
    assert (status.stage, status.note) == ("model", "from the past")
    assert (status.seconds_in("services"), status.seconds_in("model"), status.seconds) == (4, 10, 14)


def test_at_the_end_the_clock_stops(status, clock):
    status.enter("services")
    clock.now += 4
    status.end()
    clock.now += 10
    assert (status.seconds, status.seconds_in("services")) == (4, 4)
    assert not status.complete


def test_it_is_complete_when_it_ended_after_all_stages(status):
    for stage in STAGES:
        status.enter(stage)
    assert not status.complete
    status.end()
    assert status.complete


def test_rates_are_those_of_the_last_seconds(status, clock):
    traffic = watched(status)
    for _ in range(20):
        clock.now += 0.5
        traffic.sent += 500
        figures = status.sample()
    assert (figures.sent, figures.sent_rate) == (10_000, 1_000)
    for _ in range(8):
        clock.now += 0.5
        figures = status.sample()
    assert (figures.sent, figures.sent_rate) == (10_000, 0)


def test_percentiles_are_of_the_alerts_of_the_last_seconds(status):
    watched(status, alerts=[heard(30.0, ago=11), *(heard(0.001 * n) for n in range(1, 101))])
    figures = status.sample()
    assert figures.p50 == pytest.approx(51)
    assert figures.p99 == pytest.approx(100)
    watched(status, alerts=[heard(30.0, ago=11)])
    assert status.sample().p99 is None


def test_what_was_emitted_again_is_counted_apart(status):
    watched(status, alerts=[heard(0.1)], repeated=3)
    figures = status.sample()
    assert (figures.alerts, figures.re_emitted) == (1, 3)


def test_figures_are_remembered_and_checkpoints_counted_once_a_second(status, clock):
    watched(status)
    for _ in range(10):
        clock.now += 0.25
        status.sample()
    assert len(status.past) == 2
    assert status.checkpoints == 7


def test_the_latest_alerts_are_shown_with_their_evidence(status):
    watched(status, alerts=[heard(0.02, card=f"card-{number}") for number in range(9)])
    assert [card for card, *_ in status.latest] == ["card-4", "card-5", "card-6", "card-7", "card-8"]
    assert status.latest[0][1:] == ("fast", 2, 20)
