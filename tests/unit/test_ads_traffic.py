"""Impressions and clicks with known outcomes, unruly in the ways they should be."""

from datetime import timedelta

import pytest

from penstock.apps.ads.events import Click, Impression
from penstock.apps.ads.expected import click_through_of, window_of
from penstock.apps.ads.traffic import CAMPAIGNS, HOUR, START, Traffic, numbered

COUNT = 20_000


@pytest.fixture(scope="module")
def traffic():
    made = Traffic(seed=5)
    sent = [made.next() for _ in range(COUNT)]
    return made, [*sent, *made.rest()]


def test_the_same_seed_gives_the_same_events(traffic):
    again = Traffic(seed=5)
    first = [again.next() for _ in range(100)]
    assert [(type(each), each.impression, each.at) for each in first] == [
        (type(each), each.impression, each.at) for each in traffic[1][:100]
    ]


def test_each_impression_has_an_outcome(traffic):
    outcomes = traffic[0].outcomes()
    assert {impression for impression, _, _ in outcomes} == traffic[0].impressions.keys()
    alone = {impression for impression, click, _ in outcomes if click is None}
    clicked = {impression for impression, click, _ in outcomes if click is not None}
    assert not alone & clicked
    assert len(clicked) > 300


def test_clicks_after_the_hour_do_not_count_and_those_at_its_end_do(traffic):
    made, _ = traffic
    took = {click.click: click.at - made.impressions[click.impression][1] for click in made.clicks}
    counted = {click for _, click, _ in made.outcomes() if click}
    assert counted == {click for click, time in took.items() if time <= HOUR}
    assert sum(time > HOUR for time in took.values()) > 20
    assert sum(time == HOUR for time in took.values()) > 20


def test_some_clicks_come_twice_or_before_their_impression_and_nothing_is_later_than_four_minutes(traffic):
    made, sent = traffic
    assert made.early > 20
    assert any(number == 2 for _, click, number in made.outcomes() if click)
    for kind in (Impression, Click):
        highest = START
        for event in (each for each in sent if isinstance(each, kind)):
            assert highest - event.at < timedelta(minutes=4)
            highest = max(highest, event.at)


def test_click_through_is_counted_by_campaign_and_window():
    at = START + timedelta(minutes=12)
    outcomes = {
        ("i1", "c1", 1): ("shoes", at),
        ("i1", "c1", 2): ("shoes", at),  # the same click once more
        ("i1", "c2", 1): ("shoes", at),
        ("i2", None, 1): ("shoes", at),
        ("i3", None, 1): ("hats", START),
    }
    assert click_through_of(outcomes) == {
        ("shoes", START + timedelta(minutes=10)): (2, 1, 2),
        ("hats", START): (1, 0, 0),
    }
    assert window_of(at) == START + timedelta(minutes=10)


def test_campaigns_work_as_often_as_they_should(traffic):
    found = click_through_of(traffic[0].outcomes())
    for campaign, often in CAMPAIGNS.items():
        shown = sum(each[0] for (name, _), each in found.items() if name == campaign)
        clicked = sum(each[1] for (name, _), each in found.items() if name == campaign)
        assert clicked / shown == pytest.approx(often, abs=0.02)


def test_what_is_there_twice_is_numbered():
    matches = [("i", "c"), ("i", None), ("i", "c")]
    assert [*numbered(matches)] == [("i", "c", 1), ("i", None, 1), ("i", "c", 2)]
