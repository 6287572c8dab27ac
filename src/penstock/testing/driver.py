"""A pipeline as a process of its own, which may be killed, stopped for a while, and started again."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log import Broker, Groups, Topic
from penstock.log.ledger import Offsets
from penstock.pipeline import Pipeline
from penstock.pipeline.ticks import Ticks
from penstock.settings import Settings

_LONGEST = 500  # letters of a line that is quoted


class Driver:
    """Runs `penstock run` for a pipeline, in a `folder`; what it says is in `log`."""

    def __init__(
        self,
        pipeline: str,
        module: str,
        settings: Settings,
        *,
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        name: str = "driver",
        folder: Path | None = None,
    ) -> None:
        self.log = settings.data / "logs" / f"{pipeline}.{name}.log"
        plain = [f"{name}={value}" for name, value in settings.spark.items() if isinstance(value, str)]
        spark = [word for pair in plain for word in ("--conf", pair)]
        self._command = [
            sys.executable, "-m", "penstock.cli", "run", pipeline, "-m", module, *spark, *options,
        ]  # fmt: skip
        self._environment = os.environ | settings.environment() | dict(environment or {})
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; nothing is waited for."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as said:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self._folder,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """The id of the process, which is that of its group, too."""
        return None if self._process is None else self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def last_words(self, lines: int = 10) -> str:
        """The end of what it has said; Spark's lines may be long."""
        said = self.log.read_text(errors="replace").splitlines()[-lines:]
        return "\n".join(line[:_LONGEST] for line in said)

    def kill(self) -> None:
        """End the whole of it with -9: the driver, its JVM, and the workers."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def pause(self, seconds: float) -> None:
        """Stop the whole of it for a while, as a machine that swaps or a long collection would."""
        self._signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._signal(signal.SIGCONT)

    def stop(self, timeout: float = 120) -> int:
        """End it as `penstock stop` does, and return its exit code."""
        if self._process is None:
            return 0
        self._process.terminate()
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            message = f"the driver did not stop within {timeout:.0f} s"
            raise FlowError(message, hint=f"see {self.log}") from None

    def wait(self, timeout: float = 120) -> int:
        """Wait until the process ends by itself, and return its exit code."""
        return -1 if self._process is None else self._process.wait(timeout)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            signal_all(self._process.pid, number)


def signal_all(pid: int, number: int) -> None:
    """Signal a process and all that it has started.

    Children first would let the parent notice; all are gathered before the first is signalled.
    """
    try:
        parent = psutil.Process(pid)
        found = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def wait_until_caught_up(
    pipeline: Pipeline, settings: Settings, timeout: float, flows: Sequence[str] | None = None
) -> None:
    """Wait until every flow, or each of `flows`, has read, and committed, all that is in its topics.

    A flow with a watermark has then also read the tick of it.
    """
    deadline = time.monotonic() + timeout
    readers = {name: list(pipeline.flows[name].reads.values()) for name in flows or pipeline.flows}
    clean = 0
    while clean < 2:  # one flow may have fed another that was looked at before
        behind = [
            name for name, topics in readers.items() if not _caught_up(pipeline, name, topics, settings)
        ]
        clean = 0 if behind else clean + 1
        if behind and time.monotonic() > deadline:
            raise FlowError(f"{', '.join(behind)} of {pipeline.name} did not catch up in {timeout:.0f} s")
        if behind:
            time.sleep(0.3)


def _caught_up(pipeline: Pipeline, flow: str, topics: Sequence[Topic[Any]], settings: Settings) -> bool:
    broker, identity = Broker(settings), Identity.of(settings.namespace, pipeline.name, flow)
    position = Groups(settings).positions(identity.group)
    ends = {topic.name: broker.committed_end(topic.name) for topic in topics}
    if not _covers(position, ends) or identity.clock not in broker.topics([identity.clock]):
        return _covers(position, ends)
    ticks = Ticks(settings, identity.clock)
    last = ticks.last() or {"position": {}}
    known = {
        topic: {int(number): offset for number, offset in each.items()}
        for topic, each in last["position"].items()
    }
    return _covers(known, ends) and _covers(position, {identity.clock: {0: ticks.end()}})


def _covers(position: Offsets, ends: Offsets) -> bool:
    return all(
        position.get(topic, {}).get(number, 0) >= end
        for topic, each in ends.items()
        for number, end in each.items()
    )
