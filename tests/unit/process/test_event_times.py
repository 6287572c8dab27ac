"""What is learned from the reports of batches, and when the log is looked into instead."""

from penstock.pipeline.event_times import EventTimes
from penstock.pipeline.observed import Observation
from penstock.pipeline.tracker import Demand
from penstock.process.time.watermark import TimeLine

LINE = TimeLine("views", "at")


class Times(EventTimes):
    """Notes what would be looked up."""

    def __init__(self):
        super().__init__(None, {"views": None})
        self.demand({Demand(LINE, 10)})
        self._observed = [("views", Observation("times.0", (LINE,), ("0", "1")))]
        self.looked_up = []

    def _look_up(self, topic, end):
        self.looked_up.append((self.position.get(topic, {}), end))


def report(start, end, metrics=None, latest=None):
    source = {
        "startOffset": start and {"views": start},
        "endOffset": end and {"views": end},
        "latestOffset": {"views": latest or end},
        "numInputRows": 1,
    }
    observed = {} if metrics is None else {"times.0": {"others": 0, **metrics}}
    return {"sources": [{"endOffset": None, "numInputRows": 0}, source], "observedMetrics": observed}


def test_times_are_learned_batch_by_batch():
    times = Times()
    assert times.hear([report(None, {"0": 3}, {"0/0": 500, "0/1": None})])
    times.hear([report({"0": 3}, {"0": 5, "1": 2}, {"0/0": 400, "0/1": 900}, latest={"0": 9, "1": 2})])
    assert times.tracker.maxima == {LINE: {"0": 500, "1": 900}}
    assert (times.position, times.unread) == ({"views": {0: 5, 1: 2}}, {("views", 0)})
    assert times.looked_up == []


def test_a_report_that_is_heard_twice_changes_nothing():
    times, first = Times(), report(None, {"0": 3}, {"0/0": 500})
    times.hear([first, first])
    times.hear([first])
    assert (times.position, times.looked_up) == ({"views": {0: 3}}, [])


def test_what_was_not_reported_is_looked_up_once_to_where_the_last_report_ends():
    times = Times()
    times.hear([report(None, {"0": 3}, {"0/0": 500})])
    lost = [report({"0": 4}, {"0": 6}, {"0/0": 600}), report({"0": 6}, {"0": 8}, {"0/0": 700})]
    times.hear(lost)
    assert times.looked_up == [({0: 3}, {0: 8})]
    assert times.position == {"views": {0: 8}}


def test_writers_without_a_place_and_scans_without_a_report_are_looked_up():
    for metrics in ({"0/0": 500, "others": 1}, None):
        times = Times()
        times.hear([report(None, {"0": 3}, metrics)])
        assert times.looked_up == [({}, {0: 3})]
        assert times.tracker.maxima == {}


def test_a_batch_that_brought_no_events_is_not_one_that_did():
    times = Times()
    assert not times.hear([{"sources": [{"endOffset": {"_penstock_clock.x": {"0": 1}}, "numInputRows": 1}]}])
    assert times.position == {}
