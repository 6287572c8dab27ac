"""A local service: described by a value, started, stopped and looked at by the functions here."""

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import psutil

from penstock.errors import ServiceError, SettingsError
from penstock.local import files, ports, process

Reporter = Callable[[str], None]
State = Literal["running", "stopped", "crashed"]
_OUTPUT_LIMIT = 5_000_000
_ATTEMPTS = 3


class Service(Protocol):
    """What a service has to say about itself; its data is in `folder`."""

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> Path: ...
    @property
    def logs(self) -> tuple[Path, ...]:
        """Where it writes: the log to read first, and last the output of the process."""

    @property
    def port(self) -> int | None: ...
    @property
    def usual_port(self) -> int: ...
    @property
    def version(self) -> str: ...
    @property
    def stop_signal(self) -> signal.Signals: ...
    @property
    def identity(self) -> tuple[str, ...]:
        """The end of its command line, which names its data and so distinguishes it from all others."""

    def prepare(self, port: int) -> list[str]:
        """Make data and configuration if they are not there, and return the command to start."""

    def answers(self, port: int) -> bool:
        """Say whether a client is served."""

    def endpoint(self, port: int) -> object:
        """Return what a client has to know, as it is written to endpoints.json."""


@dataclass(frozen=True)
class ServiceStatus:
    """How one service is; `uptime` is in seconds."""

    name: str
    state: State
    pid: int | None
    address: str | None
    version: str
    uptime: float | None
    log: Path


def start(service: Service, report: Reporter, patience: float = 60) -> int:
    """Start a service, or attach to it if it runs, and return its port once it answers."""
    running = _running(service)
    if running and _answered(service, running, port := _port_in_use(service), patience):
        report(f"{service.name} is already running on {ports.LOOPBACK}:{port}")
        return port
    # What was running may have been killed a moment ago: it has ended by now.
    for _ in range(_ATTEMPTS):
        running, port = _launch(service)
        if _answered(service, running, port, patience):
            report(f"{service.name} is running on {ports.LOOPBACK}:{port}")
            return port
        if service.port is not None or ports.is_free(port):
            break  # it did not end for want of the port
    raise _failure(service, "ended while starting")


def stop(service: Service, report: Reporter, patience: float = 30) -> None:
    """Stop a service if it runs; its data stays."""
    running = _running(service)
    if running:
        process.stop(running, service.stop_signal, patience)
        report(f"{service.name} is stopped")
    _record(service).unlink(missing_ok=True)


def status(service: Service) -> ServiceStatus:
    """Look at a service without changing it."""
    running = _running(service)
    port = ports.remembered(_port_file(service)) if running else None
    crashed = not running and _record(service).exists()
    return ServiceStatus(
        name=service.name,
        state="running" if running else "crashed" if crashed else "stopped",
        pid=running.pid if running else None,
        address=f"{ports.LOOPBACK}:{port}" if port else None,
        version=service.version,
        uptime=max(0.0, time.time() - running.create_time()) if running else None,
        log=service.logs[0],
    )


def _record(service: Service) -> Path:
    return service.folder / "process.json"


def _port_file(service: Service) -> Path:
    return service.folder / "port"


def _running(service: Service) -> psutil.Process | None:
    return process.current(_record(service), service.identity)


def _launch(service: Service) -> tuple[psutil.Process, int]:
    """Start the process; its port is written down before, so that whoever finds it knows it."""
    process.let_go(_record(service))
    last_time = ports.remembered(_port_file(service))
    port = ports.choose(service.name, service.port, (last_time, service.usual_port))
    command = service.prepare(port)
    files.write_whole(_port_file(service), str(port))
    output = service.logs[-1]
    files.keep_below(output, _OUTPUT_LIMIT)
    pid = process.start(command, service.folder, output)
    try:
        started = psutil.Process(pid)
        process.Record.of(started, service.identity).write(_record(service))
    except psutil.NoSuchProcess:
        raise _failure(service, "ended at once") from None
    return started, port


def _port_in_use(service: Service) -> int:
    port = ports.remembered(_port_file(service))
    if port is None or service.port not in (None, port):
        raise SettingsError(
            f"{service.name} is already running on port {port or 'unknown'}, {service.port} was asked for",
            hint="run `penstock down` first",
        )
    return port


def _answered(service: Service, running: psutil.Process, port: int, patience: float) -> bool:
    """Wait for an answer; False if the process ended before it gave one."""
    deadline = time.monotonic() + patience
    while not process.ended(running):
        if _listens(running, port) and service.answers(port):
            return True
        if time.monotonic() > deadline:
            raise _failure(service, f"did not answer on port {port} within {patience:.0f} s")
        time.sleep(0.05)
    return False


def _listens(running: psutil.Process, port: int) -> bool:
    """Say whether it is this process that holds the port: two that start at once may have chosen the same."""
    try:
        return any(
            one.status == "LISTEN" and one.laddr.port == port for one in running.net_connections("tcp")
        )
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _failure(service: Service, what: str) -> ServiceError:
    lines = [line for log in service.logs for line in files.last_lines(log, 12)]
    shown = "\n  ".join(lines) or "(nothing)"
    where = " and ".join(str(log) for log in service.logs)
    return ServiceError(f"{service.name} {what}; its last lines:\n  {shown}\n", hint=f"see {where}")
