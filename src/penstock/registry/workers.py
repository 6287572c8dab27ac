"""Judges schemas of strangers in processes that are ended at a deadline, and replaced."""

import hashlib
import logging
import os
import pickle
import queue
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import psutil

from penstock.errors import CostlySchemaError, InvalidSchemaError, ServiceError
from penstock.registry.cache import BoundedCache
from penstock.registry.judge import Source
from penstock.registry.limits import Limits
from penstock.registry.worker import READY, Answer
from penstock.schemas.compatibility import Mode, Problem

_MODULE = "penstock.registry.worker"
_START_S = 120.0
_LATENESS = 4  # deadlines that may pass on the clock while the processor is busy with others
_VERDICTS = 32 * 2**20  # characters of verdicts that are kept
_LARGEST_ANSWER = 32 * 2**20
_log = logging.getLogger(__name__)


class Worker:
    """One process and the connection to it."""

    def __init__(self, limits: Limits) -> None:
        self._deadline = limits.deadline.total_seconds()
        self._folder = Path(mkdtemp(prefix="penstock-worker-"))
        ours, theirs = socket.socketpair()
        values = f"{theirs.fileno()}, {limits.memory}, {self._deadline}"
        # Not `-m`, which would give the worker's classes another name there.
        code = f"from {_MODULE} import main; main({values})"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", code],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=_environment(self._folder),
            )
        self._connection = Connection(ours.detach())
        self._ready = False

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        if not self._ready:
            if not self._connection.poll(_START_S) or self._connection.recv_bytes() != READY:
                raise EOFError("the worker did not start")
            self._ready = True

    def ask(self, name: str, arguments: tuple[object, ...]) -> Answer:
        """Give it a job; TimeoutError after the deadline, OSError or EOFError if it died of it."""
        used, late = self._used(), time.monotonic() + _LATENESS * self._deadline
        self._connection.send((name, arguments))
        while not self._connection.poll(self._deadline / 4):
            if self._used() - used >= self._deadline or time.monotonic() >= late:
                raise TimeoutError
        found = pickle.loads(self._connection.recv_bytes(_LARGEST_ANSWER))  # noqa: S301
        if not isinstance(found, Answer):
            raise EOFError("the worker answered something else")
        return found

    def _used(self) -> float:
        """The seconds of the processor that it has had: on a busy machine, others are not its fault."""
        try:
            times = psutil.Process(self._process.pid).cpu_times()
        except psutil.Error:
            raise EOFError("the worker is gone") from None
        return float(times.user + times.system)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _environment(folder: Path) -> dict[str, str]:
    paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
    return {**os.environ, "PYTHONPATH": paths, "TMPDIR": str(folder)}


class Workers:
    """A few processes, and the verdicts they came to. What costs too much is refused."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._patience = _LATENESS * limits.deadline.total_seconds()
        self._verdicts: BoundedCache[bytes, Answer] = BoundedCache(_VERDICTS)
        self._lock = threading.Lock()
        self._closed = False
        self._all: set[Worker] = set()
        self._idle: queue.Queue[Worker] = queue.Queue()  # one that was started last is ready last
        for _ in range(limits.workers):
            self._add()

    def canonical(self, schema: Source) -> str:
        return str(self._judged("canonical", schema))

    def problems(self, new: Source, earlier: Sequence[Source], mode: Mode) -> list[Problem]:
        return list(self._judged("problems", new, tuple(earlier), mode))

    def close(self) -> None:
        with self._lock:
            self._closed = True
            ended, self._all = self._all, set()
        for worker in ended:
            worker.end()

    def _judged(self, name: str, *arguments: object) -> Any:
        key = hashlib.sha256(repr((name, arguments)).encode(errors="surrogatepass")).digest()
        answer = self._verdicts.get(key)
        if answer is None:
            answer = self._asked(name, arguments)
            self._verdicts.put(key, answer, len(pickle.dumps(answer)))
        if answer.invalid is not None:
            message, where, hint = answer.invalid
            error = InvalidSchemaError(message, hint=hint)
            error.where = where
            raise error
        return answer.value

    def _asked(self, name: str, arguments: tuple[object, ...]) -> Answer:
        worker = self._take()
        answer: Answer | None = None
        try:
            answer = worker.ask(name, arguments)
        except TimeoutError:
            raise self._too_costly(f"takes more than {self._limits.deadline.total_seconds():g} s") from None
        except (OSError, EOFError):
            raise self._too_costly(f"needs more than {self._limits.memory} MB, or more stack") from None
        finally:
            self._give_back(worker, fit=answer is not None and not answer.spent)
        return self._checked(answer)

    def _checked(self, answer: Answer) -> Answer:
        if answer.no_memory:
            raise self._too_costly(f"needs more than {self._limits.memory} MB")
        if answer.failure:
            _log.warning("a schema could not be judged: %s", answer.failure)
            raise InvalidSchemaError(f"the schema can't be judged: {answer.failure.splitlines()[0]}")
        return answer

    def _too_costly(self, what: str) -> Exception:
        if self._closed:
            return ServiceError("the registry is being stopped", hint="try again")
        return CostlySchemaError(
            f"to parse the schema and compare it with earlier ones {what}",
            hint="simplify it, or raise the registry's deadline and memory in its settings",
        )

    def _take(self) -> Worker:
        """An idle worker, waiting for it; one that died while it was idle is replaced."""
        while True:
            try:
                worker = self._idle.get(timeout=self._patience)
            except queue.Empty:
                raise ServiceError(
                    f"all {self._limits.workers} workers of the registry are busy", hint="try again"
                ) from None
            try:
                worker.wait_until_ready()
                if worker.alive:
                    return worker
            except (OSError, EOFError):
                _log.warning("a worker of the registry did not start")
                self._give_back(worker, fit=False)
                raise ServiceError("a worker of the registry did not start", hint="try again") from None
            self._give_back(worker, fit=False)

    def _give_back(self, worker: Worker, *, fit: bool) -> None:
        if fit:
            self._idle.put(worker)
            return
        with self._lock:
            self._all.discard(worker)
        worker.end()
        self._add()

    def _add(self) -> None:
        with self._lock:
            if not self._closed:
                worker = Worker(self._limits)
                self._all.add(worker)
                self._idle.put(worker)
