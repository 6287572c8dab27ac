"""Why: the minimal set of events is found, and where an outcome's events end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.ops.why.cut import cut
from penstock.ops.why.minimum import Tries, reduced

MANY = 10_000


@given(st.sets(st.integers(0, 199), max_size=6), st.integers(1, 40))
def test_what_is_needed_is_what_is_left(needed, size):
    groups = [range(first, min(first + size, 200)) for first in range(0, 200, size)]
    tries = Tries(lambda numbers: needed <= set(numbers), MANY)
    found = reduced(groups, tries)
    assert set(found.kept) == (needed or set(found.kept))
    assert len(found.kept) == max(1, len(needed))  # something is always left
    assert found.minimal


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30))
@settings(max_examples=200)
def test_what_is_left_has_the_outcome_and_none_of_it_can_go(values):
    total = sum(values)

    def holds(numbers):
        return sum(values[number] for number in numbers) == total

    found = reduced([range(len(values))], Tries(holds, MANY))
    assert holds(found.kept)
    for gone in found.kept if len(found.kept) > 1 else ():
        assert not holds([number for number in found.kept if number != gone])


def test_neighbours_that_cancel_each_other_out_are_not_left_out():
    values = [5, -5, 3, 4, -4, 1]
    found = reduced([range(6)], Tries(lambda numbers: sum(values[each] for each in numbers) == 4, MANY))
    assert found.kept == [0, 1, 2, 3, 4, 5]


def test_a_group_of_no_matter_costs_one_try():
    groups = [[number] for number in range(0, 64)]
    tries = Tries(lambda numbers: 63 in numbers, MANY)
    assert reduced(groups, tries).kept == [63]
    assert tries.made <= 2 * 6


def test_tries_are_bounded_and_then_it_is_not_called_minimal():
    tries = Tries(lambda numbers: len(numbers) == 100, 10)
    found = reduced([range(100)], tries)
    assert (found.kept, found.minimal, tries.made) == (list(range(100)), False, 10)


@given(st.integers(1, 500), st.data())
def test_a_cut_is_found_in_few_looks(length, data):
    right = data.draw(st.integers(1, length))
    looks = []

    def judge(count):
        looks.append(count)
        return (count > right) - (count < right)

    assert cut(length, judge) == right
    assert len(looks) <= 11


def test_without_a_direction_the_last_events_are_left_out_one_by_one():
    assert cut(20, lambda count: 0 if count == 17 else None) == 17
    assert cut(20, lambda count: 0 if count == 3 else None) is None
    assert cut(20, lambda _: -1) is None
