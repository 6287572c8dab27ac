"""What the experiment on windows knows to be true: its disorder, and its tally."""

import itertools
import threading

import pytest

from penstock.lab.experiments.windows.disorder import Disorder
from penstock.lab.experiments.windows.tally import Tally, Window


def made(seconds, **options):
    disorder = Disorder(seed=3)
    return [each for second in range(seconds) for each in disorder.until(second + 1.0, **options)]


def test_views_come_in_the_order_in_which_they_are_sent_and_once():
    found = made(60, rate=10, share=0.3, delay=5)
    assert sorted(found) == found
    assert len({each.n for each in found}) == len(found) > 450


@pytest.mark.parametrize(("share", "least", "most"), [(0.0, 0.0, 0.0), (0.3, 0.25, 0.35), (1.0, 1.0, 1.0)])
def test_as_many_are_late_as_was_asked_for(share, least, most):
    found = made(120, rate=10, share=share, delay=6)
    late = [each for each in found if each.sent - each.at > 0.3]
    assert least <= len(late) / len(found) <= most
    assert all(3 <= each.sent - each.at <= 6 for each in late)


def test_a_rate_of_nothing_makes_nothing_and_sends_what_waits():
    disorder = Disorder(seed=3)
    before = disorder.until(10.0, rate=10, share=1.0, delay=4)
    after = disorder.until(20.0, rate=0)
    assert disorder.until(60.0, rate=0) == []
    assert len(before) + len(after) == max(each.n for each in after) + 1


def test_a_correction_replaces_and_a_retraction_takes_back():
    tally = Tally(is_sliding=False)
    for at in (0, 5, 10, 11):
        tally.send("ann", at)
    tally.emit(("ann", 0), Window(10, "ann", 0, "on time", 1))
    tally.emit(("ann", 10), Window(20, "ann", 10, "on time", 2))
    assert tally.totals()["missing"] == 1
    tally.emit(("ann", 0), Window(10, "ann", 0, "corrected", 2))
    assert (tally.totals()["missing"], tally.totals()["corrected"]) == (0, 1)
    tally.emit(("ann", 10), Window(20, "ann", 10, "retracted", 0))
    assert tally.totals() | {"closed": 1, "truth": 2, "counted": 2, "retracted": 1} == tally.totals()


def test_a_sliding_window_includes_its_end_and_not_its_start():
    tally = Tally(is_sliding=True)
    for at in (0, 5, 10):
        tally.send("ann", at)
    assert tally.truth(Window(10, "ann", 0, "on time", 2)) == 2
    assert Tally(is_sliding=False).truth(Window(10, "ann", 0, "on time", 2)) == 0


def test_results_come_in_while_sums_are_made():
    """A reader's thread emits, the experiment's own looks: neither waits for the other to be done."""
    tally = Tally(is_sliding=False)
    over = threading.Event()
    failures = []

    def emit():
        for number in itertools.count():
            if over.is_set():
                return
            tally.emit(("ann", number), Window(number + 10, "ann", number, "on time", 1))
            tally.send("ann", number)
            if number >= 2_500:
                tally.emit(("ann", number - 2_500), Window(0, "ann", 0, "retracted", 0))

    def look():
        try:
            while not over.is_set():
                tally.totals()
                tally.recent(0, 600)
        except RuntimeError as error:
            failures.append(error)
            over.set()

    threads = [threading.Thread(target=each) for each in (emit, look)]
    for each in threads:
        each.start()
    over.wait(2)
    over.set()
    for each in threads:
        each.join()
    assert failures == []
