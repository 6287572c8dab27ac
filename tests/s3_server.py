"""A server with S3's interface, on loopback, in the environment that `make servers` makes for it."""

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from pyarrow import fs

from tests.lacking import lacking

_PATIENCE = 60.0
KEYS = {"access_key": "tester", "secret_key": "hunter2", "region": "us-east-1"}


def _python() -> Path:
    home = os.environ.get("PENSTOCK_TESTS_S3_SERVER") or f"{sys.prefix}/s3-server"
    return Path(home) / "bin" / "python"


@contextmanager
def s3_server(bucket):
    """Start a server with one bucket; yields the settings of a connection to it."""
    if not _python().exists():
        lacking("the S3 server is not installed: run `make servers`")
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [str(_python()), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        connection = {"url": f"http://127.0.0.1:{port}", **KEYS}
        _make_bucket(connection, bucket, server)
        yield connection
    finally:
        server.kill()
        server.wait()


def _make_bucket(connection, bucket, server):
    deadline = time.monotonic() + _PATIENCE
    keys = {name: connection[name] for name in KEYS}
    files = fs.S3FileSystem(endpoint_override=connection["url"], allow_bucket_creation=True, **keys)
    while True:
        try:
            files.create_dir(bucket)
            return
        except OSError:
            assert server.poll() is None, "the S3 server has ended"
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
