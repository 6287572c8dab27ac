"""What came out beside what went in: lost is only what a flow has passed."""

from penstock.lab.experiments.recovery.tally import Tally


def tally():
    made = Tally()
    made.add_sent([(0, 0, 10), (1, 0, 11), (0, 1, 12), (1, 1, 13)])
    return made


def test_an_event_that_is_not_out_is_lost_only_behind_the_checkpoint():
    made = tally()
    made.add_results([10])
    made.settle({0: 1, 1: 0})
    assert made.figures() == {"exact": 1, "doubled": 0, "lost": 0, "waiting": 3, "copies": 0}
    made.settle({0: 2, 1: 1})
    assert made.figures()["lost"] == 2
    assert (made.is_lost(12), made.is_lost(13)) == (True, False)


def test_a_result_that_comes_after_all_is_not_lost():
    made = tally()
    made.settle({0: 1})
    made.add_results([10])
    made.settle({0: 1})
    assert made.figures()["lost"] == 0


def test_copies_are_counted():
    made = tally()
    made.add_results([10, 10, 10, 11])
    assert made.figures() == {"exact": 1, "doubled": 1, "lost": 0, "waiting": 2, "copies": 2}


def test_a_checkpoint_ahead_of_what_was_read_waits():
    made = tally()
    made.settle({0: 5})
    assert made.figures()["lost"] == 2
    made.add_sent([(0, 2, 14)])
    made.settle({0: 5})
    assert made.figures()["lost"] == 3


def test_a_position_is_an_events_number():
    made = tally()
    assert made.number_at({}) == 0
    assert made.number_at({0: 1, 1: 0}) == 11
    assert made.number_at({0: 2, 1: 2}) == 4
