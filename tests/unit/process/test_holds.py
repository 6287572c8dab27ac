"""Which quiet writers are waited for, and for how long."""

import pytest
from tests.event_samples import Order

from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.pipeline.holds import Holds
from penstock.pipeline.job import flow_job

LARGE = ("alerts", "0 shop.large payments/1")
STRAY = ("alerts", "0")


class Shop:
    """A busy flow that reads `payments`, and the topic behind it: both always have a little more."""

    def __init__(self):
        self.end, self.read = 100, 90
        self.written = 40
        self.holds = Holds(self, lambda topic: {0: self.written})
        self.now = 0.0

    def unread(self, topic, writer):
        return {("payments", 1): self.end} if writer.flow and self.read < self.end else {}

    def has_read(self, flow, ends):
        return self.read >= ends["payments", 1]

    def go_on(self):
        self.end, self.read, self.written = self.end + 10, self.read + 10, self.written + 1

    def look(self, *quiet, position, allowed):
        """How far the watermark may go without the writers."""
        self.now += 1.0
        self.holds.look(quiet, allowed, {"alerts": {0: position}}, self.now)
        return self.holds.allowed


def test_a_busy_flow_upstream_lets_the_watermark_follow_turn_by_turn():
    """It is always a little behind; the watermark follows to where it could go when a turn began."""
    shop = Shop()
    assert shop.look(LARGE, position=39, allowed=1000) == {}
    shop.go_on()
    assert shop.look(LARGE, position=40, allowed=2000) == {}  # it has read; what it wrote is not read yet
    for turn in range(5):
        shop.go_on()
        found = shop.look(LARGE, position=shop.written, allowed=3000 + turn)
        assert found[LARGE] in (1000, *range(3000, 3000 + turn)), turn
    assert found[LARGE] >= 3000


def test_a_flow_that_stops_with_something_to_read_holds_the_watermark():
    """An event that waits for it is not late when it comes back, however long that takes."""
    shop = Shop()
    shop.read = shop.end
    assert shop.look(LARGE, position=40, allowed=1000) == {LARGE: 1000}
    shop.end += 1
    for later in range(10):
        assert shop.look(LARGE, position=40, allowed=2000 + later)[LARGE] <= 2000
    assert shop.holds.reasons(since=shop.now - 5) == {"what shop.large has not read yet"}
    shop.read, shop.written = shop.end, 41
    assert shop.look(LARGE, position=40, allowed=3000)[LARGE] <= 2000
    shop.look(LARGE, position=41, allowed=3000)
    assert shop.look(LARGE, position=41, allowed=4000)[LARGE] >= 3000


def test_a_writer_that_was_heard_of_is_waited_for_anew():
    shop = Shop()
    shop.read = 100
    assert shop.look(LARGE, position=40, allowed=1000) == {LARGE: 1000}
    assert shop.look(position=40, allowed=2000) == {}  # not quiet
    shop.end = 110
    assert shop.look(LARGE, position=40, allowed=3000) == {}


def test_what_is_unread_of_a_partition_is_read_first():
    shop = Shop()
    assert shop.look(STRAY, position=39, allowed=1000) == {}
    assert shop.holds.reasons(since=shop.now)
    shop.written = 50
    assert shop.look(STRAY, position=40, allowed=2000) == {STRAY: 1000}


def test_a_flow_of_which_nothing_is_known_is_waited_for():
    shop = Shop()
    shop.unread = lambda *_: None
    assert shop.look(LARGE, position=40, allowed=1000) == {}
    shop.unread = lambda *_: {}
    assert shop.look(LARGE, position=40, allowed=2000) == {LARGE: 1000}


@pytest.mark.parametrize(
    ("label", "topic", "may"),
    [
        ("shop.copy", "b", True),
        ("shop.copy", "a", False),
        ("shop.gone", "b", False),
        ("shop.eu.copy", "a", True),
        ("other.copy", "a", True),
    ],
)
def test_the_flows_of_a_pipeline_are_known(label, topic, may):
    shop = Pipeline("shop")
    shop.flow(reads={"a": Topic("a", Order)}, writes=Topic("b", Order))(_copy)
    assert flow_job(shop, shop.flows["copy"]).may_be_written_by(label, topic) == may


def _copy(a):
    return a


_copy.__name__ = "copy"
