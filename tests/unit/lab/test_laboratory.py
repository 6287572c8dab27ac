"""One experiment at a time: its controls are checked, and it cleans up however it ends."""

import threading
import time

import pytest

from penstock.errors import ConfigurationError
from penstock.lab.control import Button, Choice, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.laboratory import Laboratory
from penstock.settings import Settings

CONTROLS = (
    Slider("rate", "Rate", 1, 100, 1, 10, is_live=True),
    Choice("kind", "Kind", ("a", "b"), "a"),
    Button("kill", "Kill"),
)


def laboratory(work, seconds=30.0):
    made = Experiment("one", "One", "?", (), (), "", "log.md", work, CONTROLS, seconds)
    return Laboratory([made], Settings())


def until(reached, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def state_of(lab, state):
    return lambda: lab.frame()["state"] == state


def test_it_is_steered_while_it_runs():
    seen = threading.Event()

    def work(run):
        assert run.value("kind") == "b"
        run.report("begun")
        while run.value("rate") != 50 or not run.pressed("kill"):
            run.rest(0.01)
        run.flow([{"n": 1}])
        run.show(rate=run.value("rate"))
        seen.set()

    lab = laboratory(work)
    lab.start("one", {"kind": "b"})
    lab.change("one", {"rate": 50})
    lab.press("one", "kill")
    assert seen.wait(10)
    until(lambda: lab._state == "done")
    frame = lab.frame()
    assert frame["figures"] == {"rate": 50}
    assert frame["events"] == [{"n": 1}]
    assert frame["lines"][0]["text"] == "begun"
    assert lab.frame()["events"] == []


@pytest.mark.parametrize(
    "given", [{"rate": 0}, {"rate": "10"}, {"rate": True}, {"rate": float("nan")}, {"kind": "c"}, {"x": 1}]
)
def test_wrong_values_start_nothing(given):
    lab = laboratory(lambda _: None)
    with pytest.raises(ConfigurationError):
        lab.start("one", given)
    assert lab.frame()["state"] == "idle"


def test_what_is_not_live_or_not_there_is_refused():
    lab = laboratory(lambda run: run.rest(20))
    with pytest.raises(ConfigurationError, match="does not run"):
        lab.press("one", "kill")
    with pytest.raises(ConfigurationError, match="no experiment"):
        lab.start("two", {})
    lab.start("one", {})
    with pytest.raises(ConfigurationError, match="can't be moved"):
        lab.change("one", {"kind": "b"})
    with pytest.raises(ConfigurationError, match="no button"):
        lab.press("one", "rate")
    lab.stop()


def test_it_cleans_up_however_it_ends():
    tidied = []

    def work(run):
        run.cleanup.callback(tidied.append, run.value("kind"))
        if run.value("kind") == "b":
            raise ValueError("broken")
        run.rest(20)

    lab = laboratory(work)
    lab.start("one", {})
    lab.start("one", {"kind": "b"})  # ends the first one
    until(state_of(lab, "failed"))
    assert tidied == ["a", "b"]
    assert "broken" in lab.frame()["trouble"]


def test_its_time_is_bounded():
    lab = laboratory(lambda run: [run.rest(0.05) for _ in range(1000)], seconds=0.3)
    lab.start("one", {})
    until(state_of(lab, "over"))


def test_events_that_nobody_looks_at_are_bounded():
    lab = laboratory(lambda run: run.flow({"n": n} for n in range(1000)))
    lab.start("one", {})
    until(lambda: lab._state == "done")
    frame = lab.frame()
    assert len(frame["events"]) == 400
    assert frame["left_out"] == 600
