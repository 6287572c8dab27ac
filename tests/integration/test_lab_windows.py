"""Experiment 7: what the windows have counted, lost and set aside is what a plain reader finds in the log."""

import time
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime

import pytest
from tests.laboratory import tried

from penstock.lab.experiments.windows.consumer import CountingConsumer
from penstock.lab.experiments.windows.experiment import EXPERIMENT
from penstock.lab.experiments.windows.views import View, counted_of, late_of, views_of
from penstock.lab.run import Run
from penstock.log import Broker, Consumer, Producer, from_beginning


def read(topic, settings):
    with Consumer(topic, settings, start=from_beginning()) as consumer:
        return [record.event for record in consumer.records(idle="500 ms")]


def stand_still(run):
    """No more views; wait until those that come late are sent, and all are read."""
    run.change(rate=0)
    run.until(lambda now: now["waiting"] == 0 and now["consumed"] == now["sent"])


def test_a_consumer_that_was_stopped_sees_a_spike_that_never_was(settings):
    """The counting consumer alone: it needs no Spark."""
    began = datetime.now(UTC)
    run = Run(EXPERIMENT, settings, EXPERIMENT.values({}))
    topic = views_of(run.name(""))
    with closing(run), Producer(settings) as producer:
        run.topics(topic)
        consumer = CountingConsumer(run, topic, began)
        until(lambda: consumer.has_joined)
        sent = 0
        for is_stopped in (False, True, False):
            consumer.is_stopped = is_stopped
            for _ in range(30):
                producer.send(topic, View("ann", sent, datetime.now(UTC)))
                sent += 1
                time.sleep(0.1)
            producer.flush()
        until(lambda: consumer.figures(run.elapsed)["consumed"] == sent)
        found = consumer.figures(run.elapsed)
    assert found["most_event"] <= 15
    assert found["most_processing"] > 2 * found["most_event"]
    assert sum(each[1] for each in found["by_second"]) == sum(each[2] for each in found["by_second"]) == sent


def until(reached, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "late"),
    [("tumbling", "drop"), ("tumbling", "side output"), ("hopping", "refire"), ("sliding", "refire"),
     ("session", "refire")],
)  # fmt: skip
def test_windows_agree_with_the_log(settings, kind, late):
    values = {"kind": kind, "late": late, "rate": 20, "share": 30, "delay": 30, "watermark": 1}
    with tried(EXPERIMENT, settings, **values) as run:
        run.until(lambda now: now.get("closed", 0) > 6 and now["behind"] > 10, 600)
        run.press("stop_consumer")
        run.until(lambda now: now["sent"] > now["consumed"] + 60)
        run.press("start_consumer")
        run.until(lambda now: now["sent"] < now["consumed"] + 20)
        stand_still(run)
        figures = settled(run, late)
        check(settings, run, figures, kind, late)
        prefix = run.name_of("")
    assert not [name for name in Broker(settings).topics() if name.startswith(prefix)]


def last_results(results, *, is_sliding):
    """The last result of each window, without those that were taken back."""
    last = {}
    for each in results:
        last[each.user, each.n if is_sliding else each.start] = each
    return {key: each for key, each in last.items() if each.kind != "retracted"}


def settled(run, late):
    """Wait until the flow has read all that is late."""
    if late == "refire":
        return run.until(lambda now: now["missing"] == 0, 200)
    if late == "side output":
        return run.until(lambda now: now["side"] >= now["missing"] > 0, 200)
    return run.until(lambda now: now["missing"] > 0, 200)


def check(settings, run, figures, kind, late):
    """Read what is in Kafka by a client of one's own, and compare."""
    prefix = run.name_of("")
    views, results = read(views_of(prefix), settings), read(counted_of(prefix), settings)
    assert len(views) == figures["sent"]
    last = last_results(results, is_sliding=kind == "sliding")
    if kind != "session":
        assert sum(each.rows for each in last.values()) == figures["counted"]
        assert len(last) == figures["closed"]
    late_views = read(late_of(prefix), settings)
    assert len(late_views) == figures["side"]
    if kind == "tumbling":
        check_each_window(views, last, {each.n for each in late_views}, figures, late)


def check_each_window(views, last, aside, figures, late):
    """Each window has counted its views, but for those that were late."""
    truth, counted = Counter(), Counter()
    for each in views:
        for user, start in last:
            if each.user == user and start <= each.at < last[user, start].end:
                truth[user, start] += 1
                counted[user, start] += each.n not in aside
    assert sum(truth.values()) == figures["truth"]
    for key, result in last.items():
        assert result.rows == counted[key] if late == "side output" else result.rows <= truth[key]
