import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from penstock.local import process
from penstock.local.process import Record


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[tuple[psutil.Process, tuple[str, ...]]]:
    """A detached process, and the end of its command line, which no other process has."""
    command = ("60", str(tmp_path))
    pid = process.start(
        [sys.executable, "-c", "import sys, time; time.sleep(float(sys.argv[1]))", *command],
        tmp_path,
        tmp_path / "output",
    )
    yield psutil.Process(pid), command
    try:
        process.stop(psutil.Process(pid), signal.SIGKILL, 5)
    except psutil.NoSuchProcess:
        return


def test_a_true_record_is_believed(sleeper: tuple[psutil.Process, tuple[str, ...]], tmp_path: Path) -> None:
    started, command = sleeper
    Record.of(started, command).write(tmp_path / "process.json")
    assert process.current(tmp_path / "process.json", command) == started


def test_a_reused_number_is_not_believed(sleeper: tuple[psutil.Process, tuple[str, ...]]) -> None:
    started, command = sleeper
    assert Record(started.pid, started.create_time() - 100, command).process() is None
    assert Record(started.pid, started.create_time(), ("another", "command")).process() is None
    assert Record(os.getpid(), psutil.Process().create_time(), command).process() is None


@pytest.mark.parametrize(
    "garbage",
    ["", "{", "[]", "12", '{"pid": "x"}', '{"pid": -1, "create_time": 0, "command": []}', "\x00\xff"],
)
def test_a_garbled_record_is_nothing(tmp_path: Path, garbage: str) -> None:
    path = tmp_path / "process.json"
    path.write_text(garbage)
    assert process.current(path, ("no", "such", str(tmp_path))) is None


def test_a_process_without_a_record_is_found(
    sleeper: tuple[psutil.Process, tuple[str, ...]], tmp_path: Path
) -> None:
    started, command = sleeper
    path = tmp_path / "process.json"
    assert process.current(path, command) == started
    assert Record.read(path) == Record.of(started, command)


def test_a_zombie_does_not_run(tmp_path: Path) -> None:
    command = ("60", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *command]) as child:
        record = Record.of(psutil.Process(child.pid), command)
        child.kill()
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        assert record.process() is None
        assert process.find(command) is None


def test_it_runs_in_a_session_of_its_own(sleeper: tuple[psutil.Process, tuple[str, ...]]) -> None:
    assert os.getsid(sleeper[0].pid) == sleeper[0].pid


def test_stop_ends_one_that_does_not_listen(tmp_path: Path) -> None:
    deaf = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)"
    pid = process.start([sys.executable, "-c", deaf], tmp_path, tmp_path / "output")
    while not (tmp_path / "output").read_text():
        time.sleep(0.01)
    process.stop(psutil.Process(pid), signal.SIGTERM, 0.2)
    assert not psutil.pid_exists(pid)
