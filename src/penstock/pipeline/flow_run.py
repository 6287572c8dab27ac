"""The life of a job in a runner: tried, watched, and tried again until it is done, stopped or beyond help."""

import logging
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from penstock.errors import ConfigurationError, DataError, InternalError, PenstockError, TopicError
from penstock.pipeline.attempt import Attempt
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.job import Job
from penstock.pipeline.plan import Planner
from penstock.process.source import unknown_schema
from penstock.sinks.tasks import raised

Status = Literal["starting", "running", "waiting", "stopped", "done", "failed"]
Say = Callable[[str, str], None]
_log = logging.getLogger("penstock")
_FATAL = (ConfigurationError, DataError, InternalError)
_LONGEST_PAUSE = 30.0
_PYTHON_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception): ")


def warned(flow: str, what: str) -> None:
    """Say it by Python's logging, which shows warnings unless it is told otherwise."""
    _log.warning("%s %s", flow, what)


@dataclass
class FlowRun:
    """Runs a job in a thread of its own; `failure` tells what ended it."""

    job: Job
    planner: Planner
    checkpoint: Checkpoint
    lanes: int
    once: bool = False
    from_ledger: bool = False
    say: Say = warned
    status: Status = "starting"
    failure: BaseException | None = None
    restarts: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _attempt: Attempt | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._live, name=self.job.label, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the job to end with its batch."""
        self._stopping.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended; False if it has not."""
        if self._thread is not None:
            self._thread.join(timeout)
            return not self._thread.is_alive()
        return True

    def progressed(self) -> None:
        """A batch is finished."""
        if self._attempt is not None:
            self._attempt.batches += 1
        if self.status == "starting":
            self.status = "running"

    def _live(self) -> None:
        pause = 0.0
        while not self._stopping.is_set():
            try:
                self._try()
            except Exception as error:
                if not self._goes_on_after(error):
                    return
                pause = self._next_pause(pause)
                if self.failure is not None:
                    self.say(self.job.name, f"tries again in {pause:.0f} s: {_said(self.failure)}")
                self._rest(pause)
            else:
                self.status = "stopped" if self._stopping.is_set() else "done"
                return
        self.status = "stopped"

    def _next_pause(self, last: float) -> float:
        got_on = self._attempt is not None and self._attempt.batches > 0
        return 1.0 if got_on else min(max(1.0, 2 * last), _LONGEST_PAUSE)

    def _try(self) -> None:
        self.status = "starting"
        self._attempt = Attempt(
            self.job, self.planner, self.checkpoint, self._stopping, self.lanes, self.once, self.from_ledger
        )
        self._attempt.run()

    def _goes_on_after(self, error: Exception) -> bool:
        """Learn from a failure; False if trying again is no use.

        A topic that was there at the start and is not now may be a broker that has just come back.
        """
        cause = self._cause(error)
        unknown = unknown_schema(str(error)) or unknown_schema(str(cause))
        if unknown is not None:
            self.failure = None
            self._learn(*unknown)
            return True
        if isinstance(cause, _FATAL) and not isinstance(cause, TopicError):
            self.failure, self.status = cause, "failed"
            self.say(self.job.name, f"failed: {cause}")
            return False
        self.failure = cause
        self.restarts += 1
        return True

    def _cause(self, error: Exception) -> BaseException:
        """What really happened: an error of ours on the driver or in a task, or else what Spark says."""
        kept = self._attempt.failure if self._attempt else None
        if isinstance(error, PenstockError):
            return error
        return kept if isinstance(kept, PenstockError) else raised(str(error)) or kept or error

    def _learn(self, topic: str, id: int) -> None:
        found = next(each for each in self.job.topics if each.name == topic)
        self.planner.learn(found, id)
        self.say(self.job.name, f"schema {id} of {topic} is new: planned again")

    def _rest(self, pause: float) -> None:
        self.status = "waiting"
        self._stopping.wait(pause)


def _said(error: BaseException) -> str:
    """What an error says in a line; of one that a Python worker raised, the last line of its trace."""
    told = [line for line in str(error).splitlines() if line.strip()]
    raised = [line for line in told if _PYTHON_ERROR.match(line)]
    return (raised[-1:] or told[:1] or [repr(error)])[0].strip()
