"""Views with known visits: the plain sessionizer, and traffic that is late in the ways it should be."""

from datetime import timedelta

import pytest

from penstock.apps.sessions.events import View
from penstock.apps.sessions.expected import GAP, same, visits_of
from penstock.apps.sessions.traffic import START, Traffic

COUNT = 6_000


def view(minutes, load_ms=100, page="/", user="ann"):
    return View(user, page, load_ms, START + timedelta(minutes=minutes))


@pytest.fixture(scope="module")
def traffic():
    made = Traffic(users=50, seed=3)
    for _ in range(COUNT):
        made.next()
    return made


def test_a_visit_ends_after_more_than_half_an_hour():
    found = visits_of([view(0, 10, "/a"), view(30, 20, "/b"), view(61, 30), view(5, 40, user="bob")])
    assert found == {
        ("ann", START): (START + timedelta(minutes=60), 2, "/a", "/b", 15.0, 19.5),
        ("ann", START + timedelta(minutes=61)): (START + timedelta(minutes=91), 1, "/", "/", 30.0, 30.0),
        ("bob", START + timedelta(minutes=5)): (START + timedelta(minutes=35), 1, "/", "/", 40.0, 40.0),
    }


def test_a_view_in_between_makes_one_of_two_visits():
    apart = [view(0), view(50)]
    assert len(visits_of(apart)) == 2
    assert len(visits_of([*apart, view(25)])) == 1


def test_of_views_of_one_moment_the_log_says_which_is_first():
    ((_, visit),) = visits_of([view(0, page="/a"), view(0, page="/b")]).items()
    assert visit[2:4] == ("/a", "/b")


def test_percentiles_are_the_same_but_for_their_last_bits():
    end = START + GAP
    assert same((end, 1, "/", "/", 0.1 + 0.2, 1.0), (end, 1, "/", "/", 0.3, 1.0))
    assert not same((end, 1, "/", "/", 0.3, 1.0), (end, 1, "/", "/", 0.31, 1.0))


def test_the_same_seed_gives_the_same_views(traffic):
    again = Traffic(users=50, seed=3)
    assert [again.next() for _ in range(COUNT)] == traffic.sent


def test_views_are_minutes_or_an_hour_late_or_far_too_late(traffic):
    highest, late = START, []
    for each in traffic.sent:
        highest = max(highest, each.at)
        late.append((highest - each.at, each.user))
    hours = [by for by, user in late if by > timedelta(minutes=40) and not user.startswith("straggler")]
    assert len(hours) > 50
    assert max(hours) < timedelta(minutes=101)
    stragglers = [by for by, user in late if user.startswith("straggler")]
    assert len(stragglers) > 3
    assert min(stragglers) > timedelta(hours=3)


def test_late_views_change_visits_that_would_be_over(traffic):
    highest, prompt = START, []
    for each in traffic.sent:
        if highest - each.at < timedelta(minutes=10):
            prompt.append(each)
        highest = max(highest, each.at)
    without, with_all = visits_of(prompt), visits_of(traffic.sent)
    assert len(without.keys() - with_all.keys()) > 20  # bridged, or with another start
    assert sum(without[key] != with_all[key] for key in without.keys() & with_all.keys()) > 20
