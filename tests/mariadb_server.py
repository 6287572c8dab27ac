"""A MariaDB of the tests' own, in a folder that goes with it, on loopback."""

import os
import socket
import subprocess
import time
from pathlib import Path

import pymysql

from tests.lacking import required

_PATIENCE = 60.0
PASSWORD = "p@ss/word:%"  # with what an address has to spell otherwise
OPTIONS = (
    "--server-id=7",
    "--log-bin=shop-bin",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
    "--binlog-row-image=FULL",
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=64M",
    "--innodb-flush-log-at-trx-commit=1",
    "--sync-binlog=1",
)


class MariaDb:
    """Starts a server, kills it, and starts it again on the same files."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder, self._options = folder, options
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()

    @property
    def dsn(self) -> str:
        return f"mariadb://shop:p%40ss%2Fword%3A%25@127.0.0.1:{self.port}/shop"

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def install(self) -> None:
        """Make the server's files, a user with all rights, and one database."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [
            "mariadb-install-db",
            f"--datadir={self._data}",
            "--auth-root-authentication-method=normal",
        ]
        command += ["--skip-test-db", "--no-defaults", *self._user()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        self.start()
        with (
            self.connect(user="root", password="", database=None) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("create user shop@'%%' identified by %s", [PASSWORD])
            cursor.execute("grant all on *.* to shop@'%' with grant option")
            cursor.execute("create database shop character set utf8mb4")

    def start(self) -> None:
        command = [
            "mariadbd",
            "--no-defaults",
            f"--datadir={self._data}",
            f"--port={self.port}",
            *self._user(),
        ]
        command += ["--bind-address=127.0.0.1", f"--socket={self._socket}", *OPTIONS, *self._options]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        self._await()

    def kill(self) -> None:
        """As the kernel would: without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)

    def connect(self, **more) -> "pymysql.Connection":
        given = {"user": "shop", "password": PASSWORD, "database": "shop"} | more
        return pymysql.connect(
            host="127.0.0.1", port=self.port, autocommit=True, charset="utf8mb4", connect_timeout=5, **given
        )

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def _socket(self) -> str:
        return f"{self._data}/s"

    def _await(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError((self.folder / "server.log").read_text()[-2000:])

    @staticmethod
    def _user() -> list[str]:
        return ["--user=root"] if os.geteuid() == 0 else []


def require_mariadb() -> None:
    """Leave a test out where there is no MariaDB."""
    required("mariadbd")
    required("mariadb-install-db")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
