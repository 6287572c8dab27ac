"""Redis on this machine: the system's own server, on loopback; what it acknowledges is on disk."""

import re
import secrets
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from penstock.errors import SetupError
from penstock.local import ports
from penstock.local.files import write_whole

_PROGRAM = "redis-server"
# What was acknowledged is there after a crash, and nothing is evicted: targets and their ledgers rely on it.
_SETTINGS = {
    "bind": ports.LOOPBACK,
    "protected-mode": "yes",
    "dir": "data",
    "appendonly": "yes",
    "appendfsync": "always",
    "save": '""',
    "maxmemory-policy": "noeviction",
}


@dataclass(frozen=True)
class Redis:
    """A Redis server whose data is below `data`, with a password made at random."""

    data: Path
    port: int | None = None

    name = "redis"
    usual_port = 6379
    stop_signal = signal.SIGTERM

    @property
    def folder(self) -> Path:
        return self.data / "redis"

    @property
    def logs(self) -> tuple[Path, ...]:
        return (self.data / "logs" / "redis.log",)

    @property
    def version(self) -> str:
        found = shutil.which(_PROGRAM)
        return _version(found) if found else "not installed"

    @property
    def identity(self) -> tuple[str, ...]:
        """The server would put a title of its own in the place of its command line."""
        return str(self.folder / "redis.conf"), "--set-proc-title", "no"

    def prepare(self, port: int) -> list[str]:
        """Make the password if there is none, write the settings and return the server's command."""
        program = _program()
        (self.folder / "data").mkdir(parents=True, exist_ok=True)
        if not self._password.exists():
            write_whole(self._password, secrets.token_hex(16))
        chosen = {**_SETTINGS, "port": str(port), "requirepass": self._password.read_text()}
        write_whole(
            self.folder / "redis.conf", "".join(f"{name} {value}\n" for name, value in chosen.items())
        )
        return [program, *self.identity]

    def answers(self, port: int) -> bool:
        """Say whether a client is served: while it loads its data, it answers with an error."""
        asked = f"AUTH {self._password.read_text()}\r\nPING\r\n".encode()
        try:
            with socket.create_connection((ports.LOOPBACK, port), timeout=2) as connection:
                connection.sendall(asked)
                answer = connection.makefile("rb")
                return [answer.readline(), answer.readline()] == [b"+OK\r\n", b"+PONG\r\n"]
        except OSError:
            return False

    def endpoint(self, port: int) -> str:
        """Return the address with the password in it; it is kept in files of the owner's only."""
        return f"redis://:{self._password.read_text()}@{ports.LOOPBACK}:{port}/0"

    @property
    def _password(self) -> Path:
        return self.folder / "password"


def is_installed() -> bool:
    """Whether there is a server to start."""
    return shutil.which(_PROGRAM) is not None


def _program() -> str:
    found = shutil.which(_PROGRAM)
    if found is None:
        raise SetupError(
            f"{_PROGRAM} was not found on PATH",
            hint="install Redis 6 or newer with the system's packages, as `apt install redis-server` or "
            "`brew install redis` does",
        )
    return found


@cache
def _version(program: str) -> str:
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.search(r"v=(\S+)", answer.stdout)
    return found[1] if found else "unknown"
