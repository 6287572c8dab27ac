"""The garbage collections of Java processes on this machine, by the figures that the JVM keeps."""

import os
import re
import stat
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import psutil

from penstock.ops.doctor.probes import Collections

_ROOT = Path("/tmp")  # noqa: S108 the JVM writes there, whatever TMPDIR says
_MAGIC = 0xCAFEC0C0
_COLLECTOR = re.compile(r"sun\.gc\.collector\.\d+\.time")
_FREQUENCY = "sun.os.hrt.frequency"
_PID = re.compile(r"[0-9]{1,9}")
_SHORT = 5.0  # seconds that say nothing
_MOST_BYTES, _MOST_COUNTERS = 1 << 20, 10_000  # a JVM has 32 KiB of them, unless it is started with more
_NO_TRAPS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # anybody may put a link or a pipe there
Reading = Mapping[str, tuple[float, float]]  # by process: seconds in collections, and of its life


def read_collections(processes: Iterable[str], host: str) -> Reading:
    """Return how long the Java process below each of some processes has collected, and lived."""
    found = {}
    for process in set(processes):
        where, _, pid = process.partition("/")
        java = _java_below(int(pid)) if where == host and _PID.fullmatch(pid) else None
        counters = _counters(java) if java is not None else {}
        if java is not None and counters.get(_FREQUENCY, 0) > 0:
            ticks = sum(value for name, value in counters.items() if _COLLECTOR.fullmatch(name))
            found[process] = (ticks / counters[_FREQUENCY], max(0.001, time.time() - java.create_time()))
    return found


def shares(before: Reading, after: Reading) -> tuple[Collections, ...]:
    """Return the share of collections between two readings, or else in the whole life of a process."""
    return tuple(_share(process, before.get(process, (0.0, 0.0)), now) for process, now in after.items())


def _share(process: str, before: tuple[float, float], now: tuple[float, float]) -> Collections:
    since = before if now[1] - before[1] > _SHORT else (0.0, 0.0)
    return Collections(process, (now[0] - since[0]) / (now[1] - since[1]), now[1] - since[1])


def _java_below(pid: int) -> psutil.Process | None:
    try:
        below = psutil.Process(pid).children(recursive=True)
        return next((each for each in below if each.name() == "java"), None)
    except psutil.Error:
        return None


def _counters(java: psutil.Process) -> dict[str, int]:
    """The JVM's own counters; one that keeps none, or whose format is another, has none."""
    try:
        owner = java.uids().effective
    except psutil.Error:
        return {}
    found = (_read(path, owner) for path in sorted(_ROOT.glob(f"hsperfdata_*/{java.pid}")))
    return next((parsed for parsed in map(_parsed, found) if parsed), {})


def _read(path: Path, owner: int) -> bytes:
    """The file of a JVM: a regular one of its own user; of any other, nothing."""
    try:
        opened = os.open(path, _NO_TRAPS)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        known = os.fstat(file.fileno())
        is_its_own = stat.S_ISREG(known.st_mode) and known.st_uid == owner
        return file.read(_MOST_BYTES) if is_its_own else b""


def _parsed(data: bytes) -> dict[str, int]:
    try:
        return parse_counters(data)
    except (struct.error, ValueError):
        return {}


def parse_counters(data: bytes) -> dict[str, int]:
    """Return the numbers in a JVM's performance data, by name."""
    if len(data) < 32 or struct.unpack_from(">I", data)[0] != _MAGIC:
        return {}
    order = "<" if data[4] == 1 else ">"
    at, count = struct.unpack_from(order + "ii", data, 24)
    found: dict[str, int] = {}
    for _ in range(min(count, _MOST_COUNTERS)):
        length, name_at, vector, kind = struct.unpack_from(order + "iiib", data, at)
        if length <= 0:
            break
        value_at: int = struct.unpack_from(order + "i", data, at + 16)[0]
        name = data[at + name_at : data.index(b"\0", at + name_at)].decode()
        if kind == ord("J") and vector == 0:
            found[name] = struct.unpack_from(order + "q", data, at + value_at)[0]
        at += length
    return found
