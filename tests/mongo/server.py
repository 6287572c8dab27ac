"""A stand-in for MongoDB, in Java's memory and on loopback: no MongoDB can be had where the tests run."""

import os
import socket
import subprocess
import time
from pathlib import Path

from pymongo import MongoClient

from penstock.errors import PenstockError
from penstock.local import jars, java
from tests.lacking import lacking

_HERE = Path(__file__).parent
_PATIENCE = 60.0


class Mongo:
    """Starts the server; it ends when its input does, so with this process at the latest."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "mongo.log"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/"

    def start(self) -> None:
        program, class_path = required()
        command = [program, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", class_path]
        command += [str(_HERE / "StandIn.java"), str(self.port)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log)
        self._await()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate(timeout=30)

    def connect(self) -> "MongoClient[dict]":
        return MongoClient(self.dsn, serverSelectionTimeoutMS=5000, uuidRepresentation="standard")

    def _await(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, self._log.read_text()[-2000:]
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError(self._log.read_text()[-2000:])


def required() -> tuple[str, str]:
    """Return Java and the class path; skip where they can't be had, which is an error on a build machine."""
    try:
        listed = jars.manifest(_HERE / "jars.toml")["mongo"]
        folder = jars.ensure(listed)
        return str(java.find().program), os.pathsep.join(str(folder / each.file) for each in listed)
    except PenstockError as error:
        lacking(f"the stand-in for MongoDB can't be started: {error}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
