"""Topics compared with what they should hold: equal in any order, and what differs is counted and shown."""

import pytest

from penstock.targets.comparison import compare_contents

SCHEMA = "topic string, key binary, value binary"
DUE = [("t", b"a", b"1"), ("t", b"b", b"2"), ("t", None, b"3"), ("u", b"a", None), ("t", b"a", b"1")]


def compared(spark, found, possible=DUE):
    frames = [spark.createDataFrame(rows, SCHEMA) for rows in (DUE, found, possible)]
    return compare_contents(*frames[:2], lambda: frames[2], once=True)


def test_what_is_equal_in_another_order_is_right(spark):
    assert compared(spark, DUE[::-1])[:6] == (5, 5, 0, 0, 0, ())


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        (DUE[1:], (1, 0, 0)),  # one of two equal ones is missing
        ([*DUE, DUE[1]], (0, 1, 0)),
        ([*DUE[:4], ("t", b"a", b"9")], (1, 0, 1)),
        ([*DUE[:2], ("t", b"3", None), *DUE[3:]], (1, 0, 1)),  # a key where a value should be
        ([*DUE[:3], ("t", b"a", None), DUE[4]], (1, 0, 1)),  # in another topic
        ([*DUE[1:], DUE[1]], (1, 1, 0)),  # as many as there should be
        ([], (5, 0, 0)),
    ],
)
def test_what_differs_is_counted_and_shown(spark, found, counts):
    seen = compared(spark, found)
    assert (seen.expected, seen.found) == (5, len(found))
    assert (seen.missing, seen.repeated, seen.unexpected) == counts
    assert seen.examples


def test_what_may_be_there_is_not_wrong(spark):
    more = [*DUE, ("t", b"c", b"4")]
    seen = compared(spark, more, possible=[*more, ("t", b"d", b"5")])
    assert (seen.missing, seen.repeated, seen.unexpected, seen.waiting) == (0, 0, 0, 1)
