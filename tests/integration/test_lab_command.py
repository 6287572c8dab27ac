"""`penstock lab` as a process: a platform that was not there is started with it, and stopped with it."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import httpx
import pytest

from penstock.lab.services import services
from penstock.local import Platform
from penstock.settings import Settings


@contextmanager
def lab(folder, *options):
    """The command at work in a folder without settings; its address, and all that it has said."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    command = [sys.executable, "-m", "penstock.cli", "lab", "--port", "0", *options]
    process = subprocess.Popen(
        command, cwd=folder, env=environment | {"COLUMNS": "200"}, stdout=subprocess.PIPE, text=True
    )
    said = []
    try:
        for line in process.stdout:
            said.append(line)
            found = re.search(r"lab on (http://[\d.:]+)", line)
            if found:
                yield found[1], process, said
                return
        raise AssertionError("".join(said))
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
@pytest.mark.timeout(240)
def test_it_starts_a_platform_and_stops_it_at_the_end(tmp_path):
    with lab(tmp_path) as (address, process, said):
        assert "no broker is running" in said[0]
        experiments = httpx.get(f"{address}/api/lab/experiments", timeout=30).json()["experiments"]
        assert len(experiments) > 2
        process.send_signal(signal.SIGINT)
        assert process.wait(90) == 0
    states = [each.state for each in Platform(tmp_path / ".penstock").status()]
    assert states == ["stopped", "stopped"]


def test_a_broker_that_is_named_is_used_as_it_is(settings, tmp_path):
    elsewhere = replace(settings, data=tmp_path / "data")
    said = []
    with services(elsewhere, said.append) as found:
        assert found is elsewhere
    assert (said, (tmp_path / "data").exists()) == ([], False)


def test_a_platform_that_runs_is_left_running(settings):
    said = []
    with services(Settings.load(settings.data, {"PENSTOCK_DATA": str(settings.data)}), said.append):
        pass
    assert not [line for line in said if "starting" in line or "stopped" in line]
    assert {each.state for each in Platform(settings.data).status()} == {"running"}
