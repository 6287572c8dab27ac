"""The life of a job in a runner: tried, watched, and tried again until it is done, stopped or beyond help."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from penstock.documents import JsonObject
from penstock.errors import (
    ConfigurationError,
    DataError,
    DataLossError,
    EngineError,
    InternalError,
    PenstockError,
    TopicError,
)
from penstock.pipeline.attempt import Attempt, GrownError
from penstock.pipeline.batch_history import BatchHistory
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.claim import Claim
from penstock.pipeline.flow_status import Trouble
from penstock.pipeline.job import Job
from penstock.pipeline.malformed import Judge
from penstock.pipeline.plan import Planner
from penstock.pipeline.reported import Reported
from penstock.pipeline.state import unfit_state
from penstock.pipeline.trouble import explained, one_line
from penstock.process.spark.java_errors import client_error, java_text
from penstock.process.wire.decoding import unknown_schema
from penstock.targets.tasks import raised

Status = Literal["starting", "running", "waiting", "stopped", "done", "failed"]
Reporter = Callable[[str, str], None]
_log = logging.getLogger("penstock")
_FATAL = (ConfigurationError, DataError, InternalError, EngineError)
_PERHAPS_FATAL = (TopicError, DataLossError)  # a broker that has just come back may lack topics and events
_TRIES = 4  # in a row without a batch, before trouble that may pass is taken for lasting
_LONGEST_PAUSE = 30.0
_TROUBLES = 5  # the last ones are remembered
_HEAD_START = 4.0  # seconds that a flow waits at most until others have started


def warned(flow: str, what: str) -> None:
    """Report by Python's logging, which shows warnings by default."""
    _log.warning("%s %s", flow, what)


def once_only(act: Callable[[], None]) -> Callable[[], None]:
    """Return a function that acts when it is first called."""
    left = [act]
    return lambda: left.pop()() if left else None


@dataclass
class FlowRun:
    """Runs a job in a thread of its own; `failure` is what ended it."""

    job: Job
    planner: Planner
    judge: Judge
    checkpoint: Checkpoint
    lanes: int
    once: bool = False
    from_ledger: bool = False
    anew: bool = False
    report: Reporter = warned
    gate: threading.Semaphore = field(default_factory=threading.Semaphore)  # so many start at a time
    status: Status = "starting"
    failure: BaseException | None = None
    restarts: int = 0
    history: BatchHistory = field(default_factory=BatchHistory)
    troubles: deque[Trouble] = field(default_factory=lambda: deque(maxlen=_TROUBLES))
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _attempt: Attempt | None = field(default=None, init=False)
    _thread: threading.Thread | None = field(default=None, init=False)
    _claim: Claim = field(init=False)

    def __post_init__(self) -> None:
        self._claim = Claim(self.job, self.planner)

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

    def progressed(self, report: JsonObject) -> None:
        """A batch is finished."""
        if self._attempt is not None:
            self._attempt.progressed(report)
        self.history.add(report)
        if self.status == "starting":
            self.status = "running"

    def _live(self) -> None:
        """Whatever happens, whoever waits for the flow learns that it has ended."""
        try:
            self._try_until_done()
        except BaseException as error:
            self.failure, self.status = error, "failed"
            self.troubles.append(Trouble(time.time(), one_line(error)))

    def _try_until_done(self) -> None:
        pause, tries = 0.0, 0
        while not self._stopping.is_set():
            try:
                self._try()
            except GrownError:
                self._report("its topics have more partitions: planned again")
            except Exception as error:
                tries = 1 if self._got_on else tries + 1
                if self._learned(error):
                    continue
                if not self._goes_on_after(error, tries):
                    return
                pause = 1.0 if self._got_on else min(max(1.0, 2 * pause), _LONGEST_PAUSE)
                trouble = one_line(self._trouble(error))
                self._report(Reported.of(f"tries again in {pause:.0f} s: {trouble}", level="warning"))
                self._rest(pause)
            else:
                self.status = "stopped" if self._stopping.is_set() else "done"
                return
        self.status = "stopped"

    @property
    def has_written(self) -> bool:
        """Whether it has written what it was to write; not so a replay that was done before."""
        return self._attempt is None or self._attempt.has_written

    @property
    def _got_on(self) -> bool:
        return self._attempt is not None and self._attempt.batches > 0

    def _try(self) -> None:
        self.status = "starting"
        begun = once_only(self.gate.release) if self.gate.acquire(timeout=_HEAD_START) else lambda: None
        try:
            attempt = self._attempt = Attempt(
                self.job,
                self.planner,
                self.judge,
                self.checkpoint,
                self._claim,
                self._stopping,
                self.lanes,
                self.once,
                self.from_ledger,
                self._report,
                begun,
            )
            if self.anew:
                self.job, self.anew = attempt.forget(), False
            attempt.run()
        finally:
            begun()

    def _learned(self, error: Exception) -> bool:
        """Learn the schema that a batch lacked; if that fails, it is trouble like any other."""
        unknown = unknown_schema(str(error)) or unknown_schema(str(self._cause(error)))
        if unknown is None:
            return False
        name, id = unknown
        try:
            topics = (*self.job.topics, *self.job.flow.looks_up.values())
            topic = next(each for each in topics if each.name == name)
            self.planner.learn(topic, id, self.checkpoint.planned_ranges(name))
        except Exception as trouble:
            self._report(f"schema {id} of {name} can't be learned: {one_line(trouble)}")
            return False
        self._report(f"schema {id} of {name} is new: planned again")
        return True

    def _goes_on_after(self, error: Exception, tries: int) -> bool:
        """Say whether to try again; what lasts ends the flow, and so does what passes if it is to end."""
        self.failure = cause = self._trouble(error)
        self.troubles.append(Trouble(time.time(), one_line(cause)))
        lasting = isinstance(cause, _FATAL) and (not isinstance(cause, _PERHAPS_FATAL) or tries >= _TRIES)
        if lasting or (self.once and tries >= _TRIES):
            self.status = "failed"
            self._report(Reported.of(f"failed: {cause}", level="error"))
            return False
        self.restarts += 1
        return True

    def _trouble(self, error: Exception) -> BaseException:
        return explained(self._cause(error), self.job, self.checkpoint.path)

    def _cause(self, error: Exception) -> BaseException:
        """What really happened: an error of ours on the driver or in a task, or else what Spark says."""
        kept = self._attempt.failure if self._attempt else None
        if isinstance(error, PenstockError):
            return error
        if isinstance(kept, PenstockError):
            return kept
        known = raised(str(error)) or unfit_state(str(error)) or self._refused(error) or self._refused(kept)
        return known or kept or error

    def _refused(self, error: BaseException | None) -> PenstockError | None:
        """What Spark's Kafka client says of access or its settings."""
        said = java_text(error)
        return client_error(f"run flow {self.job.label!r}", said, self.planner.settings) if said else None

    def _report(self, what: str) -> None:
        """Report it; a disk that is full or a reader that is gone must not end the flow."""
        with suppress(Exception, SystemExit):
            self.report(self.job.flow.name, what)

    def _rest(self, pause: float) -> None:
        self.status = "waiting"
        self._stopping.wait(pause)
