"""A process that is watched: killed or broken, it is started again; ended, it stays so."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

BODY = """
import os, signal, sys, time
from pathlib import Path
from penstock.cli.supervised import supervise

is_first = supervise(lambda line: print(line, flush=True), again=(75,) if "again" in sys.argv else ())
starts = Path(sys.argv[1])
count = len(starts.read_text().split()) + 1 if starts.exists() else 1
with starts.open("a") as file:
    file.write(f"{os.getpid()}\\n")
assert is_first == (count == 1)
exec(sys.argv[2])
"""


class Watched:
    def __init__(self, folder: Path, body: str, *more: str) -> None:
        self.starts = folder / "starts"
        command = [sys.executable, "-c", BODY, str(self.starts), body, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def children(self, number: int) -> list[int]:
        """The ids of the children once so many were started."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            found = self.starts.read_text().split() if self.starts.exists() else []
            if len(found) >= number:
                return [int(each) for each in found]
            time.sleep(0.05)
        raise TimeoutError(f"{number} children")


@pytest.fixture
def watched(tmp_path):
    started = []

    def start(body: str, *more: str) -> Watched:
        started.append(Watched(tmp_path, body, *more))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("code", [0, 75, 78])
def test_who_ends_by_itself_is_not_started_again(watched, code):
    found = watched(f"sys.exit({code})")
    assert found.process.wait(20) == code
    assert len(found.children(1)) == 1


def test_a_code_after_which_it_may_work_later_is_started_again_where_that_is_asked_for(watched):
    found = watched("sys.exit(75 if count == 1 else 0)", "again")
    said, _ = found.process.communicate(timeout=20)
    assert found.process.returncode == 0
    assert len(found.children(2)) == 2
    assert "ended with code 75; started again in 1 s" in said


def test_killed_and_broken_children_are_started_again(watched):
    found = watched("if count == 1: raise RuntimeError('broke')\nif count == 2: time.sleep(60)\nsys.exit(0)")
    os.kill(found.children(2)[1], signal.SIGKILL)
    said, _ = found.process.communicate(timeout=30)
    assert found.process.returncode == 0
    assert len(found.children(3)) == 3
    assert "broke; started again in 1 s" in said
    assert "was ended by signal 9; started again in 2 s" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_reaches_the_child_and_ends_both(watched, number):
    body = "for n in (2, 15): signal.signal(n, lambda *_: sys.exit(7))\nPath(sys.argv[1] + '.up').touch()\n"
    found = watched(body + "time.sleep(60)")
    child = found.children(1)[0]
    until = time.monotonic() + 20
    while not found.starts.with_name("starts.up").exists() and time.monotonic() < until:
        time.sleep(0.02)
    found.process.send_signal(number)
    assert found.process.wait(20) == 7
    assert not psutil.pid_exists(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_child_dies_with_its_parent(watched):
    found = watched("time.sleep(60)")
    child = psutil.Process(found.children(1)[0])
    found.process.kill()
    child.wait(20)
