"""What Java writes to its error stream, without the lines that would bury what flows report."""

import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from py4j.java_gateway import JavaGateway
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway

_NOISE = re.compile(
    rb"WARNING: Using incubator modules: jdk\.incubator\.vector"
    rb"|Setting default log level to |To adjust logging level use sc\.setLogLevel"
    rb"|(Starting )?Streaming TransformWithStateInPandas Python worker"
)

_LONGEST = 65_536  # bytes of a line


def start_java(conf: SparkConf) -> JavaGateway:
    """Start the JVM; a thread passes on what it writes to its error stream, also if it does not start."""
    ours, javas = os.pipe()
    try:
        lines = os.fdopen(ours, "rb")
        threading.Thread(target=pass_on, args=(lines,), name="java-stderr", daemon=True).start()
        return launch_gateway(conf, {"stderr": javas})  # type: ignore[no-untyped-call]
    finally:
        os.close(javas)


def _write(line: bytes) -> None:
    while line:
        line = line[os.write(2, line) :]


def pass_on(lines: IO[bytes], write: Callable[[bytes], object] = _write) -> None:
    """Pass lines on, but for noise and the blank line behind it.

    It goes on whatever becomes of a line: Java would stand still if nobody read what it writes.
    """
    dropped = False
    for line in iter(lambda: lines.readline(_LONGEST), b""):
        dropped = bool(_NOISE.match(line)) or (dropped and not line.strip())
        if not dropped:
            with suppress(OSError):
                write(line)
