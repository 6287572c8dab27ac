"""Lag is judged by what a group did over a window of commits."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.ops.lag.judging import judge, longest_gap, worst
from penstock.ops.model import Commit

NOW = 1_000.0


def commits(*positions, ends=None, last=NOW, every=30.0):
    """Commits at regular times, the last one at `last`."""
    ends = ends or [100] * len(positions)
    first = last - every * (len(positions) - 1)
    return [Commit(first + every * n, *each) for n, each in enumerate(zip(positions, ends, strict=True))]


def test_a_group_that_had_read_everything_is_fine():
    assert judge(commits(100, 100, 100, 100), 500, NOW) == "ok"
    assert judge(commits(10, 20, 100, 100, ends=[50, 60, 100, 200]), 500, NOW) == "ok"


def test_a_group_that_is_at_the_end_now_is_fine_whatever_was_before():
    assert judge(commits(10, 5, 10), 10, NOW) == "ok"


def test_a_group_that_falls_back_is_a_rewind():
    assert judge(commits(50, 60, 20, 30), 100, NOW) == "rewind"


def test_a_group_without_commits_for_longer_than_they_took_has_stopped():
    assert judge(commits(10, 20, 30, last=NOW - 61), 100, NOW) == "stopped"
    assert judge(commits(10, 20, 30, last=NOW - 59), 100, NOW) != "stopped"
    assert judge(commits(10, 20, 30, last=NOW - 200, every=100), 100, NOW) != "stopped"


def test_a_group_without_commits_in_the_window_has_stopped():
    assert judge(commits(10, 20, last=NOW - 700), 100, NOW) == "stopped"
    assert judge([], 100, NOW) == "stopped"


def test_a_group_that_commits_every_quarter_of_an_hour_is_fine_until_it_misses_two():
    moves = (10, 20, 30, 40, 50)
    for ago in (0, 600, 1200, 1799):
        assert judge(commits(*moves, ends=[90, 80, 75, 90, 80], last=NOW - ago, every=900), 100, NOW) == "ok"
    assert judge(commits(*moves, last=NOW - 1801, every=900), 100, NOW) == "stopped"
    assert judge(commits(10, 20, last=NOW - 1700, every=900), 100, NOW) == "ok", "two are enough to know"


def test_whoever_says_how_often_it_commits_is_waited_for_without_any_known_commit():
    assert judge([], 100, NOW, gap=900.0, waiting=1700.0) == "ok"
    assert judge([], 100, NOW, gap=900.0, waiting=1900.0) == "stopped"
    assert judge([], 100, NOW, gap=0.001, waiting=61.0) == "stopped"


def test_an_event_that_waits_for_less_than_two_usual_gaps_accuses_nobody():
    rested = commits(10, 20, 30, ends=[10, 20, 30], last=NOW - 30_000, every=900)
    assert judge(rested, 31, NOW, waiting=800.0) == "ok"
    assert judge(rested, 31, NOW, waiting=1900.0) == "stopped"


def test_members_of_whom_no_two_commits_are_known_are_not_accused():
    assert judge([], 100, NOW, has_members=True) == "unknown"
    assert judge(commits(10, last=NOW - 601), 100, NOW, has_members=True) == "unknown"
    assert judge(commits(10, 20, 30, last=NOW - 200), 100, NOW, has_members=True) == "stopped"


def test_a_position_that_is_only_committed_again_says_nothing_of_how_often_it_moves():
    assert longest_gap(commits(20, 20, 20, every=3000)) is None
    assert longest_gap(commits(10, 20, 20, every=3000)) == 3000
    assert longest_gap(commits(20, 20, every=3000), every=10.0) == 10.0
    assert longest_gap(commits(10, 20, every=9000)) == 3600, "it rested meanwhile"


def test_rare_commits_deserve_a_warning_only_once_there_are_enough():
    slow = [Commit(NOW - 900 * n, 100 - 10 * n, 200 - 15 * n) for n in reversed(range(5))]
    assert judge(slow[2:], 200, NOW) == "ok"
    assert judge(slow, 200, NOW) == "warning"


def test_rare_commits_at_the_end_of_what_there_was_are_fine():
    found = commits(10, 20, 30, 40, ends=[10, 20, 30, 40], last=NOW - 800, every=900)
    assert judge(found, 100, NOW, waiting=700.0) == "ok"


def test_one_commit_says_nothing_until_it_leaves_the_window():
    assert judge(commits(10, last=NOW - 500), 100, NOW) == "ok"
    assert judge(commits(10, last=NOW - 601), 100, NOW) == "stopped"


def test_events_that_just_came_accuse_nobody():
    assert judge([], 100, NOW, waiting=5.0) == "ok"
    assert judge(commits(10, 10, 10, 10), 100, NOW, waiting=5.0) == "ok"


def test_a_group_whose_commits_stay_where_they_are_has_stalled():
    assert judge(commits(10, 10, 10, 10), 100, NOW) == "stalled"
    assert judge(commits(10, 10, 10, every=5.0), 100, NOW) == "ok", "it is too early to say"


def test_a_group_that_gets_no_nearer_to_the_end_deserves_a_warning():
    assert judge(commits(10, 20, 30, 40, ends=[20, 31, 45, 60]), 80, NOW) == "warning"
    assert judge(commits(10, 20, 30, 40, ends=[20, 30, 40, 50]), 80, NOW) == "warning"


def test_a_group_that_gets_nearer_at_times_is_fine():
    assert judge(commits(10, 20, 30, 40, ends=[20, 35, 42, 60]), 80, NOW) == "ok"


def test_commits_before_the_window_do_not_count():
    old = [Commit(NOW - 700, 100, 100)]
    assert judge([*old, *commits(10, 10, 10, 10)], 100, NOW) == "stalled"


def test_a_group_is_as_bad_as_its_worst_partition():
    assert worst(["ok", "warning", "stopped", "rewind"]) == "stopped"
    assert worst(["ok", "unknown"]) == "unknown"


steps = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 100), st.floats(1, 30)), min_size=1, max_size=15
)


def made(steps):
    """Commits whose ends never fall, all of them in the window."""
    found, at, end = [], NOW - sum(step for *_, step in steps), 0
    for position, grown, step in steps:
        at, end = at + step, end + grown
        found.append(Commit(at, position, end))
    return found


@given(steps, st.integers(0, 1000), st.data())
def test_whoever_reached_the_end_anywhere_is_fine(steps, grown, data):
    found = made(steps)
    number = data.draw(st.integers(0, len(found) - 1))
    found[number] = Commit(found[number].at, found[number].end, found[number].end)
    assert judge(found, found[-1].end + grown, NOW) == "ok"


@given(steps)
def test_whoever_is_accused_never_had_read_everything(steps):
    found = made(steps)
    if judge(found, found[-1].end, NOW) != "ok":
        assert all(each.lag for each in found)
