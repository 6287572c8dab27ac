"""Trouble: what Spark's errors mean for a flow, and in one line what an error says."""

import re
import traceback
from collections.abc import Callable

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import AnalysisException

from penstock.errors import DataLossError, EngineError, FlowError, PenstockError
from penstock.pipeline.job import Job

_PYTHON_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception): ")
_CALLED = re.compile(r"An error occurred while calling ")
_CAUSE = re.compile(r"^Caused by: (.+)$", re.M)
_CLASS = re.compile(r"^:? ?(?:[a-z0-9_]+\.)+[A-Za-z0-9$_]+(?:: |$)")
_LOSS = re.compile(
    r"Some data may have been lost because they are not available in Kafka any more.*?"
    r"Reason:\s*(?P<what>.+?)\s*(?:SQLSTATE|\n\s*at |\n\n|$)",
    re.S,
)
_STATE = re.compile(r"\[(?P<kind>CANNOT_LOAD_STATE_STORE\.\w+)\] (?P<what>[^\n]+)")
_STATE_FILE = re.compile(r"FileNotFoundException: (?:File )?(?:file:)?(?P<file>\S*/state/\S+)")
_REALTIME = re.compile(
    r"\[STREAMING_REAL_TIME_MODE\.\w*NOT_(?:IN_ALLOWLIST|SUPPORTED)\] "
    r"(?:Streaming real-time mode has the following limitation: )?"
    r"(?P<what>.*?)\.?(?: To bypass|\s+SQLSTATE|\s*$)",
    re.S,
)
_TIMESTAMP = re.compile(r"\[KAFKA_MALFORMED_RECORD_TIMESTAMP\] (?P<what>[^\n]+)")


def engine_is_gone(error: BaseException) -> bool:
    """Whether Java does not answer any more: nothing can be done in this process."""
    if isinstance(error, Py4JJavaError):
        return False
    if isinstance(error, Py4JNetworkError):
        return True
    if isinstance(error, ConnectionError):  # of whom? a user's own code may have connections, too
        return any("py4j" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
    return isinstance(error, Py4JError) and "Answer from Java side is empty" in str(error)


def explained(error: BaseException, job: Job, path: str) -> BaseException:
    """Return an error of ours for what Spark says, where it is known what it means for a flow."""
    if isinstance(error, PenstockError):
        return error
    if engine_is_gone(error):
        return EngineError(
            f"Spark's Java process has ended under flow {job.label!r}: {one_line(error)}",
            hint="start the run again; its log and the system's (out of memory?) say why it died",
        )
    if isinstance(error, AnalysisException):
        return FlowError(
            f"flow {job.label!r} can't be planned: {error.getMessage()}",
            hint="its function or its target names what is not there",
        )
    text = str(error)
    for pattern, explain in _MEANINGS:
        found = pattern.search(text)
        if found is not None:
            return explain(found, job, path)
    return error


def _lost_events(found: re.Match[str], job: Job, _: str) -> DataLossError:
    return DataLossError(
        f"flow {job.label!r} can't read what it has not read yet: {_folded(found['what'])}",
        hint="events were deleted before they were read, by retention or by somebody. Nothing was skipped: "
        'take the loss and go on behind it with options={"failOnDataLoss": "false"}, and give the topic a '
        "longer retention; if the topic is archived, `penstock rebuild` reads them there",
    )


def _lost_state(found: re.Match[str], job: Job, path: str) -> FlowError:
    what = found.groupdict().get("what") or f"{found['file']} does not exist"
    return FlowError(
        f"flow {job.label!r} can't load its state from {path}: {_folded(what)}",
        hint="a file of the checkpoint was lost: bring it back from a copy, or begin anew with "
        f"`penstock run … --flow {job.flow.name} --begin-anew` and a new target",
    )


def _beyond_realtime(found: re.Match[str], job: Job, _: str) -> FlowError:
    return FlowError(
        f"flow {job.label!r} can't run in real-time mode: {_folded(found['what'])}",
        hint="use stream mode, or split the flow into two with a topic between",
    )


def _strange_time(found: re.Match[str], job: Job, _: str) -> FlowError:
    return FlowError(
        f"flow {job.label!r} met a record that Spark can't read: {_folded(found['what'])}",
        hint="let the producer write milliseconds; what stands there is passed by a new checkpoint behind it",
    )


_MEANINGS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Job, str], PenstockError]], ...] = (
    (_LOSS, _lost_events),
    (_STATE, _lost_state),
    (_STATE_FILE, _lost_state),
    (_TIMESTAMP, _strange_time),
    (_REALTIME, _beyond_realtime),
)


def one_line(error: BaseException) -> str:
    """What an error says in a line: of one that a Python worker raised, the last line of its trace; of one
    that came through Java, its root."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [line for line in lines if _PYTHON_ERROR.match(line)]
    causes = _CAUSE.findall(str(error))
    if raised:
        return raised[-1]
    if lines and _CALLED.match(lines[0]) and (causes or len(lines) > 1):
        return _CLASS.sub("", causes[-1] if causes else lines[1]) or lines[1]
    return (lines or [repr(error)])[0]


def _folded(text: str) -> str:
    return " ".join(text.split())
