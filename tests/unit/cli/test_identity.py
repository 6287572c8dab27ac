"""A process is known again, whatever happens to the clock, and never mistaken for another."""

import os
import subprocess
import sys

import psutil
import pytest

from penstock.control.process_identity import find, identity


@pytest.fixture
def process():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield psutil.Process(child.pid)
    child.kill()
    child.wait()


def test_a_process_is_known_after_the_clock_was_set(process, monkeypatch):
    written = identity(process)
    step = psutil.Process.create_time
    monkeypatch.setattr(psutil.Process, "create_time", lambda self: step(self) + 3600)
    assert find(written).pid == process.pid


def test_another_process_of_the_same_number_is_not_taken_for_it(process):
    written = identity(process)
    assert find({**written, "since_boot": written["since_boot"] - 1}) is None
    assert find({**written, "boot": "another start of the machine"}) is None


def test_what_an_older_version_wrote_down_is_understood(process):
    written = {"pid": process.pid, "started": process.create_time() + 1.0}
    assert find(written).pid == process.pid
    assert find({**written, "started": written["started"] - 60}) is None


def test_a_process_that_has_ended_is_not_found(process):
    written = identity(process)
    process.kill()
    process.wait()
    assert find(written) is None
    assert find({"pid": os.getpid()}) is None
    assert find({}) is None
