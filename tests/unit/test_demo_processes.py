"""Processes beside flows: started once, killed with all that they have started, and what they said last."""

import signal
import time

import psutil

from penstock.apps.demo.child import Child
from penstock.apps.demo.processes import Processes
from penstock.settings import Settings


def server(tmp_path, name="server"):
    return Child(
        name,
        "http.server",
        ("0", "--bind", "127.0.0.1"),
        Settings(data=tmp_path, kafka={"bootstrap.servers": "127.0.0.1:1"}),
    )


def test_a_child_is_started_once_stopped_for_a_while_and_killed(tmp_path):
    child = server(tmp_path)
    assert not child.alive
    child.start()
    process = child._process
    child.start()
    assert child._process is process
    child.signal(signal.SIGSTOP)
    until = time.monotonic() + 5
    while psutil.Process(process.pid).status() != psutil.STATUS_STOPPED:
        assert time.monotonic() < until
    child.kill()
    assert not child.alive
    child.signal(signal.SIGSTOP)  # of the dead, nothing is asked


def test_the_first_dead_of_several_has_the_last_words_in_short_lines(tmp_path):
    broken = Child(
        "broken",
        "penstock.no_such_module",
        ("x" * 2_000,),
        Settings(data=tmp_path, kafka={"bootstrap.servers": "127.0.0.1:1"}),
    )
    together = Processes((server(tmp_path), broken))
    together.start()
    broken._process.wait(20)
    broken.log.write_text(f"no module\n{'x' * 2_000}")
    assert not together.alive
    first, second = together.last_words().splitlines()
    assert (first, len(second)) == ("no module", 500)
    together.kill()
    assert not any(each.alive for each in together.all)
