"""Posts with planted trends, the rankings that are due of them, and when a trend counts as found."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from penstock.apps.trending.events import BatchRun, Trend
from penstock.apps.trending.outcome import Outcome, Seen, delay, due, ranked, same
from penstock.apps.trending.traffic import DISORDER, SHARE, Planted, Traffic
from penstock.apps.trending.truth import Rankings

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def at(seconds):
    return NOON + seconds * SECOND


def sent(seconds, rate=50, planted=()):
    """Some seconds of posts after ten minutes of them, with trends that begin at some seconds."""
    traffic = Traffic()
    made = [*traffic.history(NOON, timedelta(minutes=10), rate)]
    for number in range(seconds * rate):
        if number % rate == 0 and number // rate in planted:
            traffic.plant(at(number / rate))
        made.append(traffic.next(at(number / rate)))
    return traffic, made


def test_the_same_seed_gives_the_same_posts():
    assert sent(5)[1] == sent(5)[1]


def test_a_planted_trend_has_its_share_of_the_posts_from_its_beginning_on():
    traffic, made = sent(40, planted=(10,))
    (trend,) = traffic.planted
    before = [post for post in made if at(-DISORDER.total_seconds()) < post.at < trend.began]
    after = [post for post in made if post.at >= trend.began]
    assert sum(post.tag == trend.tag for post in before) / len(before) < SHARE / 3
    assert sum(post.tag == trend.tag for post in after) / len(after) == pytest.approx(SHARE, rel=0.4)


def test_rankings_are_by_growth_and_not_by_count():
    rankings = Rankings(2, 10 * SECOND, 5 * SECOND, 60 * SECOND, floor=1.0)
    often = [("news", at(second / 2)) for second in range(140)]
    found = rankings.of([*often, *(("cat", at(62 + second)) for second in range(8))])
    assert found[at(70)] == [("cat", 8, 8.0), ("news", 20, 1.0)]
    assert found[at(75)][0][:2] == ("cat", 5)


def test_what_usually_comes_counts_from_the_first_post_on():
    rankings = Rankings(1, 10 * SECOND, 5 * SECOND, 3600 * SECOND, floor=1.0)
    found = rankings.of([("news", at(second)) for second in range(40)])
    assert found[at(10)] == [("news", 10, 10.0)]  # nothing came before
    assert found[at(40)] == [("news", 10, 1.0)]  # 30 in the 30 seconds before


def test_a_trend_is_found_by_the_first_ranking_of_a_later_time_that_has_it():
    trend = Planted("cat", NOON)
    before, after, later = (
        Seen(NOON.timestamp() + heard, at(end), frozenset({"cat"}))
        for heard, end in ((1.0, -1), (9.0, 5), (14.0, 10))
    )
    other = Seen(NOON.timestamp() + 2, at(2), frozenset({"dog"}))
    assert delay(trend, [before, other, later, after]) == 9.0
    assert delay(trend, [before, other]) is None


def trends(rankings, heard):
    return [
        (end.timestamp() + heard, Trend(tag, end, end, place, uses, 1.0, growth))
        for end, ranking in rankings.items()
        for place, (tag, uses, growth) in enumerate(ranking, 1)
    ]


def complete():
    traffic, _ = sent(60, planted=(10, 30))
    posts = [*traffic.posts, ("goodnight", at(120))]
    hopping, tumbling = due(posts, "5 seconds"), due(posts, "30 seconds")
    runs = [(at(12).timestamp(), BatchRun(at(11), [traffic.planted[0].tag], 1000, 1.5))]
    return Outcome(
        posts,
        traffic.planted,
        trends(hopping, 1.0),
        trends(tumbling, 1.0),
        runs,
        at(0).timestamp(),
        at(50).timestamp(),
    )


def test_a_right_outcome_has_no_problems_and_shows_what_each_way_saw():
    report = complete().report()
    assert report.problems == []
    shown = {name: (value, text) for name, value, text in report.figures}
    assert shown["#meteorshower"][1].startswith("until it was found; batch 2.0 s, tumbling")
    assert shown["#lostcat"][1].startswith("until it was found; batch –")
    assert shown["batch"] == ("1.5 s", "the longest of 1 runs, which read 1,000 posts in all")


def test_every_wrong_outcome_has_a_problem():
    right = complete()
    heard, first = right.hopping[0]
    changed = [(heard, replace(first, uses=first.uses + 1)), *right.hopping[1:]]
    for wrong, what in (
        (replace(right, hopping=changed), "hopping: 1 of"),
        (replace(right, hopping=[*right.hopping, right.hopping[0]]), "hopping: 1 of"),
        (replace(right, tumbling=right.tumbling[10:]), "tumbling: 1 of"),
        (replace(right, planted=[*right.planted, Planted("nobody", NOON)]), "#nobody was not found"),
    ):
        assert any(each.startswith(what) for each in wrong.problems), wrong.problems


def test_rankings_are_compared_but_for_rounding():
    (end, ranking), *_ = due(sent(20)[0].posts, "5 seconds").items()
    ((_, again),) = ranked(trend for _, trend in trends({end: ranking}, 0))
    assert same(ranking, again)
    assert same(ranking, [(tag, uses, growth * (1 + 1e-12)) for tag, uses, growth in ranking])
    assert not same(ranking, ranking[::-1])
    assert not same(ranking, ranking[1:])
