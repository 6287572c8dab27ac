"""The demo's plan: short, and long enough to show what it has to."""

from datetime import timedelta

import pytest

from penstock.apps.fraud.pipeline import fraud
from penstock.apps.fraud.plan import CHECKPOINT_INTERVAL, Plan
from penstock.apps.fraud.traffic import AT_ONCE, EVERY
from penstock.durations import duration


def test_each_flow_in_real_time_has_two_checkpoints_in_the_measured_time():
    intervals = [flow.checkpoint_interval for flow in fraud.flows.values() if flow.mode == "realtime"]
    assert intervals == [CHECKPOINT_INTERVAL] * 3
    assert 2 * duration(CHECKPOINT_INTERVAL) < timedelta(seconds=Plan.seconds)


def test_what_is_planned_leaves_most_of_four_minutes_to_the_machine():
    assert Plan.settled + Plan.seconds + Plan.after < 90


@pytest.mark.parametrize(("rate", "at_first"), [(1_000, 100), (200, 50), (20, 20)])
def test_it_begins_slowly(rate, at_first):
    assert Plan(rate).rate_at_first == at_first


def test_a_stolen_card_pays_six_times_in_a_minute_also_at_first():
    between = EVERY * AT_ONCE / Plan(200).rate_at_first  # seconds
    assert 5 * between < 60
