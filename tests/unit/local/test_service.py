"""Starting and stopping, with a service that is only a socket."""

import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.errors import ServiceError, SettingsError
from penstock.local import ports, service

LISTEN = """
import socket, sys, time
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
time.sleep(60)
"""


@dataclass(frozen=True)
class Echo:
    """A service that listens and says nothing."""

    folder: Path
    usual_port: int
    port: int | None = None
    script: str = LISTEN

    name = "echo"
    version = "1"
    stop_signal = signal.SIGTERM

    @property
    def logs(self) -> tuple[Path, ...]:
        return (self.folder / "echo.log",)

    @property
    def identity(self) -> tuple[str, ...]:
        return ("echo", str(self.folder))

    def prepare(self, port: int) -> list[str]:
        self.folder.mkdir(exist_ok=True)
        return [sys.executable, "-c", self.script, str(port), *self.identity]

    def answers(self, port: int) -> bool:
        return ports.is_open(port)

    def endpoint(self, port: int) -> object:
        return port


@pytest.fixture
def echo(tmp_path: Path) -> Iterator[Echo]:
    made = Echo(tmp_path / "echo", ports.any_free())
    yield made
    service.stop(made, lambda _: None)


def start(one: Echo) -> int:
    return service.start(one, lambda _: None, patience=10)


def test_the_port_is_remembered(echo: Echo) -> None:
    first = start(echo)
    service.stop(echo, lambda _: None)
    assert first == echo.usual_port
    assert start(Echo(echo.folder, ports.any_free())) == first


def test_a_port_that_is_lost_to_another_program_is_given_up(
    echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind((ports.LOOPBACK, 0))
        other.listen()
        lost = other.getsockname()[1]
        free = iter([True])  # the port was free when it was looked at, and is taken from then on
        real = ports.is_free
        monkeypatch.setattr(ports, "is_free", lambda port: next(free, False) if port == lost else real(port))
        assert start(Echo(echo.folder, lost)) != lost
    assert service.status(echo).state == "running"


def test_a_demanded_port_is_not_exchanged_for_another(echo: Echo) -> None:
    start(echo)
    with pytest.raises(SettingsError, match=r"echo is already running on port .*penstock down"):
        start(Echo(echo.folder, echo.usual_port, port=ports.any_free()))


def test_a_killed_one_is_started_again(echo: Echo) -> None:
    port = start(echo)
    pid = service.status(echo).pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 5
    while not ports.is_free(port) and time.monotonic() < until:  # a busy machine takes its time to end it
        time.sleep(0.01)
    assert start(echo) == port
    assert service.status(echo).pid != pid


def test_a_failure_shows_the_last_lines_and_where_they_are(echo: Echo) -> None:
    broken = Echo(echo.folder, echo.usual_port, script="raise SystemExit('the disk is full')")
    with pytest.raises(
        ServiceError, match=r"(?s)echo ended while starting.*the disk is full.*see .*echo.log"
    ):
        start(broken)
    assert service.status(broken).state == "crashed"


def test_one_that_never_answers_is_given_up(echo: Echo) -> None:
    silent = Echo(echo.folder, echo.usual_port, script="import time; time.sleep(60)")
    with pytest.raises(ServiceError, match=r"did not answer on port \d+ within 0 s"):
        service.start(silent, lambda _: None, patience=0.3)
