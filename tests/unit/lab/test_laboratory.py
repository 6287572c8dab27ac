"""One experiment at a time: its controls are checked, and it cleans up however it ends."""

import threading
import time

import pytest

from penstock.errors import ConfigurationError, PenstockError
from penstock.lab import children
from penstock.lab import laboratory as laboratory_module
from penstock.lab import run as run_module
from penstock.lab.control import Button, Choice, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.laboratory import Laboratory
from penstock.settings import Settings

CONTROLS = (
    Slider("rate", "Rate", 1, 100, 1, 10, is_live=True),
    Choice("kind", "Kind", ("a", "b"), "a"),
    Button("kill", "Kill"),
)


def laboratory(work, seconds=30.0, **settings):
    made = Experiment("one", "One", "?", (), (), "", "log.md", work, CONTROLS, seconds)
    return Laboratory([made], Settings(**settings))


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


class Process:
    """A child process that ends when it is told to, or only when it is killed."""

    pid = None

    def __init__(self, said, *, is_stubborn=False):
        self.alive, self._said, self._is_stubborn = True, said, is_stubborn

    def ask_to_end(self):
        self._said.append("asked")
        self.alive = self._is_stubborn

    def kill(self):
        self._said.append("killed")
        self.alive = False


def test_processes_end_before_anything_waits_for_the_network(monkeypatch):
    monkeypatch.setattr(children, "_PATIENCE", 0.1)
    said = []

    def work(run):
        run.adopt(Process(said))
        run.cleanup.callback(said.append, "network")
        run.adopt(Process(said, is_stubborn=True))
        run.rest(20)

    lab = laboratory(work)
    lab.start("one", {})
    lab.stop()
    assert said == ["asked", "asked", "killed", "network"]


def test_processes_end_also_if_the_experiment_hangs(monkeypatch):
    monkeypatch.setattr(laboratory_module, "_ENDED_WITHIN", 0.1)
    monkeypatch.setattr(laboratory_module, "_CLEANED_WITHIN", 0.1)
    said, begun, over = [], threading.Event(), threading.Event()

    def work(run):
        run.adopt(Process(said))
        begun.set()
        over.wait(20)  # a broker that does not answer
        run.adopt(Process(said))

    lab = laboratory(work)
    lab.start("one", {})
    assert begun.wait(10)
    with pytest.raises(PenstockError, match="has not cleaned up"):
        lab.stop()
    assert said == ["asked"]
    over.set()
    until(state_of(lab, "stopped"))
    assert said[:2] == ["asked", "killed"]  # what came after the end was ended at once


def test_topics_are_deleted_also_if_only_some_could_be_made(monkeypatch, tmp_path):
    def fail(topics, broker):
        raise PenstockError("the second topic can't be made")

    removed = []
    monkeypatch.setattr(run_module, "Broker", lambda settings: None)
    monkeypatch.setattr(run_module, "apply", fail)
    monkeypatch.setattr(run_module, "remove_logs", lambda *what: removed.append(what[1]))
    lab = laboratory(lambda run: run.topics(), data=tmp_path)
    lab.start("one", {})
    until(state_of(lab, "failed"))
    run = lab.frame()["run"]
    assert removed == [[f"lab.one.{run}.", f"_penstock.lab-{run}."]]


def test_all_that_could_not_be_removed_is_said(monkeypatch, tmp_path):
    def fail(_, what, *more):
        raise PenstockError(f"{what} is left", hint=f"remove {what}")

    monkeypatch.setattr(run_module, "remove_schema", fail)
    monkeypatch.setattr(run_module, "remove_slot", fail)

    def work(run):
        assert run.schema() == f"lab_{run.id}"
        run.slot("a_slot", "a_publication")

    lab = laboratory(work, data=tmp_path)
    lab.start("one", {})
    until(state_of(lab, "failed"))
    trouble = lab.frame()["trouble"]
    run = lab.frame()["run"]
    assert f"a_slot is left; remove a_slot; lab_{run} is left; remove lab_{run}" in trouble
    assert str(tmp_path / "lab" / f"{run}.json") in trouble
