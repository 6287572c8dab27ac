"""A shard of the keys: a thread that writes the submissions that wait, many in one transaction."""

import logging
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial

from confluent_kafka import KafkaError, KafkaException

from penstock.errors import PenstockError, ServiceError, TryAgainError
from penstock.gateway.delivery import delivery_error
from penstock.gateway.key_writer import KeyWriter, Write
from penstock.gateway.refusal import Refusal
from penstock.gateway.submission import Prepared, Reply, Submission
from penstock.log.client import is_transient
from penstock.log.transactional_producer import FENCED

_AT_ONCE, _MOST_WAITING = 500, 1_000  # submissions
_PATIENCE = 15.0  # within which a submission is written, or refused
_FORGET_EVERY = 60.0
_PASSING = (
    *FENCED,
    KafkaError._FATAL,
    KafkaError._TIMED_OUT,
    KafkaError._MSG_TIMED_OUT,
    KafkaError._PURGE_QUEUE,
    KafkaError._STATE,
    KafkaError.CONCURRENT_TRANSACTIONS,
)
_log = logging.getLogger(__name__)


class Shard:
    """Takes submissions, and brings each to an end: written, answered as before, or refused."""

    def __init__(self, writer: KeyWriter) -> None:
        self._writer = writer
        self._waiting: queue.Queue[Submission | None] = queue.Queue(_MOST_WAITING)
        self._forgotten_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=writer.id, daemon=True)
        self._thread.start()

    def submit(self, submission: Submission) -> None:
        """Hand a submission over; its reply comes later."""
        try:
            self._waiting.put_nowait(submission)
        except queue.Full:
            raise Refusal.busy(f"{_MOST_WAITING} requests wait to be written") from None

    def end(self) -> None:
        """Write what waits, and let go, in the background."""
        self._waiting.put(None)

    def join(self, deadline: float) -> None:
        """Wait until it has ended, but not longer than to a time of the monotonic clock."""
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self) -> None:
        self._take_over()
        while (first := self._taken()) is not None:
            self._settle([first, *self._more()])
            self._forget()
        self._writer.close()

    def _take_over(self) -> None:
        """Open at once: what a gateway that died has left open would hold up readers."""
        try:
            self._writer.open()
        except Exception as error:  # whatever it is, the first request finds out more
            _log.warning("%s can't be opened yet: %s", self._writer.id, error)

    def _taken(self) -> Submission | None:
        while True:
            try:
                return self._waiting.get(timeout=_FORGET_EVERY)
            except queue.Empty:
                self._forget()

    def _more(self) -> list[Submission]:
        """What has come meanwhile; a request to end stays for the next time."""
        found: list[Submission] = []
        while len(found) < _AT_ONCE and not self._waiting.empty():
            each = self._waiting.get_nowait()
            if each is None:
                self._waiting.put(None)
                break
            found.append(each)
        return found

    def _forget(self) -> None:
        if time.monotonic() - self._forgotten_at > _FORGET_EVERY:
            self._forgotten_at = time.monotonic()
            try:
                self._writer.forget()
            except sqlite3.Error as error:  # a full disk must not end the thread
                _log.warning("%s can't forget old keys: %s", self._writer.id, error)
                self._writer.relearn()

    def _settle(self, batch: Sequence[Submission]) -> None:
        """Write a batch; what passes, such as another gateway that breaks in, is tried again for a while."""
        waiting = [each for each in batch if each.reply.set_running_or_notify_cancel()]
        deadline, pause = time.monotonic() + _PATIENCE, 0.01
        while waiting:
            failure = self._tried(waiting)
            if failure is None:
                return
            waiting = [each for each in waiting if not each.reply.done()]
            if not _is_passing(failure) and len(waiting) > 1:
                for each in waiting:  # one of them is to blame: the others are written without it
                    self._settle_alone(each)
                return
            if not _is_passing(failure) or time.monotonic() > deadline:
                _fail(waiting, failure)
                return
            time.sleep(random.uniform(0, pause))  # noqa: S311 - two gateways shut each other out
            pause = min(2 * pause, 0.5)

    def _settle_alone(self, submission: Submission) -> None:
        failure = self._tried([submission])
        if failure is not None:
            _fail([submission], failure)

    def _tried(self, waiting: Sequence[Submission]) -> Exception | None:
        """Try to write; return what stood in the way."""
        try:
            self._writer.open()
            self._heed_others(waiting)
            self._write(self._new(waiting))
        except sqlite3.Error as error:  # SQLite leaves what a full disk has cut off as it is
            self._writer.relearn()
            return ServiceError(f"the keys can't be kept: {error}", hint="has the gateway's disk room?")
        except SystemError:  # a fatal error, raised by the client within a callback
            self._writer.drop()
            return KafkaException(KafkaError(KafkaError._FATAL, "the producer broke off"))
        except Exception as error:
            self._writer.drop()
            if not isinstance(error, PenstockError | KafkaException):
                _log.exception("a batch of %s failed", self._writer.id)
            return error
        return None

    def _heed_others(self, waiting: Sequence[Submission]) -> None:
        """Before a refusal, learn what was written: a gateway of another version may have taken the key."""
        if any(isinstance(each.content, Refusal) and not self._writer.find(each.key) for each in waiting):
            self._writer.catch_up()

    def _write(self, batch: Sequence[tuple[Submission, Prepared]]) -> None:
        if batch:
            answers = self._writer.write([Write(each.key, each.body, content) for each, content in batch])
            for (each, _), answer in zip(batch, answers, strict=True):
                each.succeed(answer, repeated=False)

    def _new(self, submissions: Sequence[Submission]) -> list[tuple[Submission, Prepared]]:
        """Answer what was answered before, or is refused; return the rest with what is to be written."""
        found: dict[bytes, Submission] = {}
        rest = []
        for each in submissions:
            if self._is_known(each, found.get(each.key)):
                continue
            if isinstance(each.content, Refusal):
                each.fail(each.content)
            else:
                rest.append((each, each.content))
                found[each.key] = each
        return rest

    def _is_known(self, each: Submission, twin: Submission | None) -> bool:
        """Whether a key was used, or is about to be by another one of the batch."""
        if twin is not None and twin.body == each.body:
            twin.reply.add_done_callback(partial(_share, each))
            return True
        used = self._writer.find(each.key)
        if twin is None and used is None:
            return False
        if used is not None and used.body == each.body:
            each.succeed(used.answer, repeated=True)
        else:
            each.fail(_other_body())
        return True


def _share(submission: Submission, reply: "Future[Reply]") -> None:
    error = reply.exception()
    if error is None:
        submission.succeed(reply.result().answer, repeated=True)
    else:
        submission.fail(error)


def _other_body() -> Refusal:
    return Refusal(
        422,
        "gateway.key-reused",
        "this idempotency key was used for another body",
        hint="give each request a key of its own, and repeat it with the same bytes",
    )


def _fail(submissions: Sequence[Submission], error: Exception) -> None:
    for each in submissions:
        each.fail(_explained(error))


def _is_passing(error: Exception) -> bool:
    if isinstance(error, KafkaException):
        return error.args[0].code() in _PASSING or is_transient(error.args[0])
    return isinstance(error, TryAgainError)


def _explained(error: Exception) -> Exception:
    """What a client is shown, which repeats its request: whether it was written, the next try finds out."""
    if not isinstance(error, KafkaException):
        return error
    return delivery_error(error.args[0])
