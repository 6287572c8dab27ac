"""A gateway as a process of its own, which tests kill and start again on its port."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

SHOP = Path(__file__).parent / "integration" / "gateway_shop.py"


class GatewayProcess:
    """`penstock gateway` over the shop's topic."""

    def __init__(self, settings, **environment):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self.port = taken.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self._environment = {**os.environ, **settings.environment(), **environment, "COLUMNS": "200"}
        self.start()

    def start(self):
        command = [sys.executable, "-m", "penstock.cli", "gateway", "-m", str(SHOP), "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True)
        first = self.process.stdout.readline()
        assert "gateway on" in first, first

    def kill(self):
        self.process.kill()
        self.process.wait()

    def terminate(self):
        """Ask it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
