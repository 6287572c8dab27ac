"""A real OpenSearch of one node on this machine, on loopback, in a process of its own."""

import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path
from socket import socket
from typing import Self

from penstock.errors import ServiceError
from penstock.local import jars, java

MANIFEST = Path(__file__).with_name("jars.toml")
PROGRAM = Path(__file__).with_name("SingleNode.java")
_SECONDS = 90


def has_compiler() -> bool:
    """Whether Java compiles the node's program when it runs it: a JDK does."""
    return java.find().program.with_name("javac").exists()


class Node:
    """A server whose files are below a folder, from `start` to `kill`; it may be started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self._transport = folder, _free_port(), _free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        found = jars.manifest(MANIFEST)["opensearch"]
        folder = jars.ensure(found)
        path = os.pathsep.join(str(folder / jar.file) for jar in found)
        ports = str(self.port), str(self._transport)
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [str(java.find().program), "-Xmx512m", "-cp", path, str(PROGRAM), str(self.folder), *ports]
        with (self.folder / "out.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait()

    def kill(self) -> None:
        """End it at once, as when its machine fails."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        self._process = None

    def _wait(self) -> None:
        end = time.monotonic() + _SECONDS
        health = f"{self.url}/_cluster/health?wait_for_status=yellow&timeout=5s"
        while time.monotonic() < end and self._process is not None and self._process.poll() is None:
            try:
                with urllib.request.urlopen(health, timeout=10):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.3)
        self.kill()
        raise ServiceError(f"OpenSearch did not start: {(self.folder / 'out.log').read_text()[-2000:]}")


def _free_port() -> int:
    with closing(socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
