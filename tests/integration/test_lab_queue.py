"""Experiment 3: what the log and the queue did is what the broker has, also with killed workers."""

import os
from collections import defaultdict

import pytest
from tests.laboratory import tried

from penstock.lab.experiments.queue.experiment import EXPERIMENT
from penstock.lab.experiments.queue.task import EACH, KEYS, TASKS, tasks
from penstock.log import Broker, Consumer, Groups, from_beginning


def in_the_log(settings, name):
    """The numbers of each key, as a client of one's own reads them."""
    found = defaultdict(list)
    with Consumer(tasks(name), settings, start=from_beginning()) as consumer:
        for record in consumer.records(idle="500 ms"):
            found[record.event.key].append(record.event.number)
    return found


def is_done(now):
    return now.get("queue_done") == now.get("log_done") == TASKS


def check_in_order(events, side):
    """Each key's tasks were done first in the order of their numbers."""
    done = defaultdict(list)
    for each in events:
        if (each["side"], each["word"]) == (side, "done") and each["task"][1] not in done[each["task"][0]]:
            done[each["task"][0]].append(each["task"][1])
    return all(numbers == sorted(numbers) for numbers in done.values())


@pytest.mark.long
def test_every_task_is_done_on_both_sides(settings):
    with tried(EXPERIMENT, settings, workers=2, work=20) as run:
        run.until(lambda now: now.get("queue_done", 0) > 20)
        run.press("kill_queue")
        done = run.until(is_done)
        assert (done["queue_killed"], done["log_out_of_order"], done["log_redelivered"]) == (1, 0, 0)
        assert check_in_order(run.events, "log")
        name = run.name_of("tasks")
        log = in_the_log(settings, name)
        assert log == {f"{key}": list(range(EACH)) for key in range(KEYS)}
        run.until(lambda _: sum(Groups(settings).positions(run.name_of("log"))[name].values()) == TASKS)
        run.press("replay")
        run.until(lambda now: now["log_again"] > 20)
        assert run.figures["queue_again"] == 0
    assert not {each for each in Broker(settings).topics() if each.startswith(name)}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_killed_workers_lose_nothing(settings):
    with tried(EXPERIMENT, settings, workers=3, work=100) as run:
        run.until(lambda now: now.get("queue_done", 0) > 30 and now["log_done"] > 30, 90)
        for side in ("queue", "log"):
            run.until(lambda now, side=side: any(each["task"] for each in now[f"{side}_workers"]))
            run.press(f"kill_{side}")
        done = run.until(is_done, 120)
        assert (done["queue_killed"], done["log_killed"], done["log_out_of_order"]) == (1, 1, 0)
        assert done["queue_out_of_order"] > 0
        assert done["log_redelivered"] > 0
        assert done["log_takeover"] > 3
        assert check_in_order(run.events, "log")
        assert not check_in_order(run.events, "queue")
        run.press("replay")
        again = run.until(lambda now: now["log_again"] == TASKS, 120)
        assert again["queue_again"] == 0
        for each in ("kill_queue", "kill_queue", "kill_queue"):
            run.press(each)
        run.until(lambda now: now["queue_killed"] == 2)  # the last one is left alive


@pytest.fixture(autouse=True)
def no_process_is_left():
    """What the experiment has started is gone when it is over."""
    before = children()
    yield
    assert children() <= before


def children():
    listed = os.popen(f"ps -o pid=,args= --ppid {os.getpid()}").read().splitlines()
    return {line.split(None, 1)[0] for line in listed if "penstock.lab" in line}
