"""The site's traffic and what is due of it: known before any flow has run."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from penstock.apps.pageviews.events import PageCount, PageMinute, TopPages, View
from penstock.apps.pageviews.outcome import Outcome
from penstock.apps.pageviews.sketch_error import SketchError
from penstock.apps.pageviews.tables import Tables
from penstock.apps.pageviews.traffic import DISORDER, FRONT, LATE, TOO_LATE, Traffic
from penstock.apps.pageviews.truth import Truth, place_of, ten_of

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def sent(count, seed=1):
    traffic = Traffic(seed)
    return traffic, [traffic.next(at(number / 100)) for number in range(count)]


def test_the_same_seed_gives_the_same_views():
    assert sent(500)[1] == sent(500)[1]
    assert sent(500)[1] != sent(500, seed=2)[1]


def test_most_views_are_on_time_some_are_late_and_a_few_too_late():
    traffic, views = sent(20_000)
    delays = [at(number / 100) - view.at for number, view in enumerate(views)]
    assert sum(delay <= DISORDER + timedelta(seconds=0.1) for delay in delays) == len(traffic.truth.prompt)
    assert sum(LATE[0] <= delay <= LATE[1] + timedelta(seconds=0.1) for delay in delays) == traffic.truth.late
    assert sum(TOO_LATE[0] <= delay for delay in delays) == len(traffic.truth.too_late)
    assert traffic.truth.late > 100
    assert len(traffic.truth.too_late) > 5
    assert {view.device for view, delay in zip(views, delays, strict=True) if delay > LATE[0]} == {"mobile"}


def test_some_pages_are_viewed_far_more_than_others():
    counts = Counter(view.url for view in sent(20_000)[1])
    assert sum(counts[url] for url in FRONT) > 10_000
    assert len(counts) > 1_000


def test_what_was_refused_is_not_due():
    truth = Truth()
    ann, bob, again = (View("/", who, "mobile", at(5)) for who in ("ann", "bob", "ann"))
    for view in (ann, bob, again):
        truth.note(view)
    assert truth.minutes([]) == {("/", NOON): (3, 2)}
    assert truth.minutes([again]) == {("/", NOON): (2, 2)}
    assert truth.minutes([ann, again]) == {("/", NOON): (1, 1)}
    assert truth.minutes([ann, bob, again]) == {}


def test_a_view_counts_in_the_six_minutes_that_end_after_it():
    truth = Truth(prompt=[View("/", "ann", "desktop", at(10)), View("/", "ann", "desktop", at(19.9))])
    assert truth.windows() == {at(20 + 10 * hop): Counter({"/": 2}) for hop in range(6)}


def test_equal_pages_share_a_rank_and_the_greater_name_is_in_front():
    counts = Counter({"/a": 3, "/b": 3, "/c": 5} | {f"/x{number}": 1 for number in range(10)})
    assert [*ten_of(counts)][:4] == ["/c", "/b", "/a", "/x9"]
    assert [ten_of(counts)[url] for url in ("/c", "/b", "/a", "/x9")] == [(1, 5), (2, 3), (2, 3), (4, 1)]
    assert len(ten_of(counts)) == 10


def sketch(end, total, **pages):
    return TopPages(end, end, total, [PageCount(f"/{url}", views) for url, views in pages.items()])


def test_the_error_of_a_sketch_is_measured_on_its_last_word():
    truth = {at(10): Counter({"/a": 60, "/b": 40}), at(20): Counter({"/a": 10})}
    emitted = [sketch(at(10), 50, a=1, b=1), sketch(at(10), 100, a=61, b=40)]
    error = SketchError.of(truth, emitted, tracked=100)
    assert (error.windows, error.missing, error.found, error.broken) == (1, 1, 2, 0)
    assert (error.largest, error.mean) == pytest.approx((0.01, 0.005))


@pytest.mark.parametrize(("total", "estimate"), [(99, 60), (100, 64), (100, 59)])
def test_a_sketch_beyond_its_error_is_broken(total, estimate):
    truth = {at(10): Counter({"/a": 60, "/b": 40})}
    assert SketchError.of(truth, [sketch(at(10), total, a=estimate)], tracked=100).broken == 1


def complete():
    """An outcome in which everything is right."""
    traffic = Traffic()
    views = [traffic.next(at(number / 100)) for number in range(2_000)]
    truth = traffic.truth
    refused = [view for view in views if view.id in truth.too_late]
    windows = truth.windows()
    running = [PageMinute(url, start, views, at(0)) for (url, start), views in truth.running().items()]
    sketches = [
        TopPages(
            end, end, counts.total(), [PageCount(url, views) for url, (_, views) in ten_of(counts).items()]
        )
        for end, counts in windows.items()
    ]
    tables = Tables(truth.minutes(refused), 1, {end: ten_of(counts) for end, counts in windows.items()})
    return {"truth": truth, "tables": tables, "running": running, "sketches": sketches, "refused": refused}


def test_a_right_outcome_has_no_problems():
    assert Outcome(**complete()).problems == []
    assert Outcome(**complete()).report(2_000).complete


def test_every_wrong_outcome_has_a_problem():
    right = complete()
    (place, (views, visitors)), *_ = right["tables"].minutes.items()
    wrong = right["tables"].minutes | {place: (views + 1, visitors)}
    on_time = right["truth"].prompt[0]
    for name, value, what in (
        ("tables", Tables(wrong, 0, right["tables"].top), "minutes: 1 of"),
        ("tables", Tables(right["tables"].minutes, 0, {}), "top 10:"),
        ("running", right["running"][1:], "running: 1 of"),
        ("sketches", right["sketches"][1:], "1 windows have no sketch"),
        ("refused", [*right["refused"], on_time], "1 refused views were not too late"),
    ):
        problems = Outcome(**right | {name: value}).problems
        assert any(each.startswith(what) for each in problems), problems


def test_views_at_the_end_are_of_a_minute_that_stays_open():
    traffic = Traffic()
    closing = [*traffic.closing(NOON)]
    assert {view.url for view in closing} == {*FRONT}
    assert traffic.truth.minutes([]) == {}
    assert traffic.truth.running() == {place_of(view): 1 for view in closing}
