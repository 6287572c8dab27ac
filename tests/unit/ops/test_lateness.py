"""The watermark advisor's advice follows from the counts, and its plots show them."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from penstock.durations import duration
from penstock.ops.lateness import Partition, advise, drawn, plotted
from penstock.ops.lateness.ladder import LADDER, rounded_up, spelled

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
disorders = st.lists(st.timedeltas(timedelta(0), timedelta(days=9)), min_size=1, max_size=200)


def partition(number, found, **more):
    late = tuple(sum(each > delay for each in found) for delay in LADDER)
    return Partition(number, len(found), late=late, worst=max(found), **more)


@given(st.lists(disorders, min_size=1, max_size=4), st.floats(0, 0.99))
def test_the_delay_is_the_least_with_which_so_few_are_late(logs, share):
    advice = advise([partition(number, found) for number, found in enumerate(logs)], share)
    every = [each for found in logs for each in found]

    def late(delay):
        return sum(each > delay for each in every) / len(every)

    assert late(advice.delay) == advice.late <= share
    shorter = [delay for delay in LADDER if delay < advice.delay]
    assert all(late(delay) > share for delay in shorter)


@given(st.timedeltas(timedelta(0), timedelta(days=30)))
def test_a_step_is_long_enough_and_is_read_as_it_is_spelled(length):
    step = rounded_up(length)
    assert step >= length
    assert duration(spelled(step), zero=True) == step


def test_idle_is_longer_than_usual_pauses_and_quiet_partitions_are_named():
    second = timedelta(seconds=1)
    busy = partition(0, [second], gaps=(7 * second, 9 * second), last=NOON)
    left = partition(1, [second], gaps=(second, second), last=NOON - timedelta(minutes=5))
    advice = advise([busy, left, Partition(2)], 0.001)
    assert (advice.idle, advice.quiet, advice.empty) == (15 * second, (1,), (2,))
    assert advice.watermark == 'Watermark("1 second", idle="15 seconds")'


def test_events_dated_ahead_ask_for_a_bound():
    advice = advise([partition(0, [timedelta(0)], ahead=3)], 0.001)
    assert advice.watermark == 'Watermark("0 seconds", idle="10 seconds", future="1 hour")'


def test_a_topic_without_events_has_no_late_ones():
    advice = advise([Partition(0)], 0.001)
    assert (advice.delay, advice.late, advice.empty) == (timedelta(0), 0.0, (0,))


def test_the_chosen_delay_is_marked_in_both_plots():
    found = [timedelta(seconds=each) for each in (0, 0, 0.3, 1.5, 1.5, 4)]
    advice = advise([partition(0, found)], 0.2)
    lines = list(plotted(advice.shares, advice.delay))
    assert [line for line in lines if "←" in line] == [f"{'2 seconds':>12}    16.6667 % ← ██████████"]
    picture = ElementTree.fromstring(drawn("a < b", advice.shares, advice.delay))
    bars = [each for each in picture if each.tag.endswith("rect")][1:]
    assert len(bars) == len(lines)
    assert [each.get("fill") for each in bars].count("#d98a1f") == 1
