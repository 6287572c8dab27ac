"""An inlet at work: receives, hands on, and ends without losing what it has received."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Event as Flag
from types import TracebackType
from typing import Generic, Self, TypeVar

from penstock.durations import duration
from penstock.errors import DeliveryError
from penstock.events import Event
from penstock.inlets.counts import Counts
from penstock.inlets.intake import Intake
from penstock.inlets.messages import Messages
from penstock.inlets.receiver import Incoming, Source
from penstock.schemas import SchemaDirectory
from penstock.settings import Settings

E = TypeVar("E", bound=Event)
_TICK = 0.1
_ACKNOWLEDGED_EVERY = 0.05
_REPORTED_EVERY = 1.0
_DRAINED_FOR = 1.0  # what senders go on sending at the end is not read for longer
_QUIET = 10  # times that nothing has come: a long line comes in parts


class Inlet(Generic[E]):
    """Listens as soon as it is made, and works while `run` does.

        with Inlet(Udp(9125), Messages(readings), settings) as inlet:
            inlet.run()  # until inlet.stop() is called, by a signal or another thread

    At the end it reads what has come, and waits up to `grace` for the log; DeliveryError says how much was
    left. `report` is called with the counts about every second.
    """

    def __init__(
        self,
        source: Source,
        messages: Messages[E],
        settings: Settings,
        *,
        schemas: SchemaDirectory | None = None,
        grace: str | timedelta = "8 seconds",
        report: Callable[[Counts], None] = lambda _: None,
    ) -> None:
        self._intake = Intake(messages, settings, schemas)
        self._receiver = source.open()
        self._grace, self._report = duration(grace).total_seconds(), report
        self._stopped, self._gives_up_at = Flag(), float("inf")
        self._received = self._dropped = 0
        self._acknowledged_at = self._reported_at = time.monotonic()

    @property
    def address(self) -> str:
        """Where senders reach it."""
        return self._receiver.address

    @property
    def counts(self) -> Counts:
        intake, receiver = self._intake, self._receiver
        return Counts(
            self._received,
            intake.sent,
            intake.dead,
            self._dropped,
            intake.waiting,
            receiver.dropped_by_kernel(),
            receiver.refused,
        )

    def run(self) -> Counts:
        """Receive until `stop` is called; return what became of all that came."""
        try:
            while not self._stopped.is_set():
                self._take(self._receiver.receive(_TICK))
                self._intake.wait(0)
                self._acknowledge_when_due()
                self._report_when_due()
            self._drain()
        except Exception as error:
            self._save(error)
            raise
        return self._end()

    def stop(self) -> None:
        """Let `run` come to its end; any thread may call it, and a signal's handler."""
        self._stopped.set()

    def close(self) -> None:
        """Let go of the socket; senders are on their own."""
        self._receiver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, messages: list[Incoming]) -> None:
        now = datetime.now(UTC)
        found = [each for each in messages if not _is_empty(each)]
        self._received += len(found)
        for message in found:
            while not self._intake.take(message, now):
                if not self._receiver.is_patient or self._has_given_up:
                    self._dropped += 1
                    break
                self._intake.wait(_TICK)
                self._report_when_due()

    @property
    def _has_given_up(self) -> bool:
        """Whether the end has come, and the log has had its time."""
        if self._stopped.is_set() and self._gives_up_at == float("inf"):
            self._gives_up_at = time.monotonic() + self._grace
        return time.monotonic() > self._gives_up_at

    def _save(self, error: Exception) -> None:
        """Bring to the log what waits for it before an error ends the inlet; say what is left."""
        try:
            self._intake.flush(self._grace)
        except Exception as further:
            error.add_note(f"and while the rest was written: {further}")
        counts = self.counts
        left = counts.waiting + counts.received - counts.sent - counts.dead - counts.dropped
        if left:
            error.add_note(
                f"{left} messages are not in the log, and their senders have to repeat them: {counts}"
            )

    def _end(self) -> Counts:
        receiver = self._receiver
        is_flushed = self._intake.flush(max(1.0, self._gives_up_at - time.monotonic()))
        counts = self.counts
        self._report(counts)
        if not is_flushed or (receiver.is_patient and self._dropped):
            raise DeliveryError(
                f"the log did not take {counts.waiting + self._dropped} messages in time: {counts}",
                hint="their senders have to send them again",
            )
        receiver.acknowledge()
        return counts

    def _drain(self) -> None:
        """Let nobody new in, take what has come until nothing more does, and what has come in part."""
        _ = self._has_given_up  # the time of grace begins now, unless it has
        self._receiver.stop_listening()
        until, quiet = time.monotonic() + _DRAINED_FOR, 0
        while quiet < _QUIET and time.monotonic() < until:
            messages = self._receiver.receive(_TICK / _QUIET)
            quiet = 0 if messages else quiet + 1
            self._take(messages)
        self._take(self._receiver.unfinished())

    def _acknowledge_when_due(self) -> None:
        receiver, now = self._receiver, time.monotonic()
        if receiver.acknowledges and now - self._acknowledged_at > _ACKNOWLEDGED_EVERY:
            self._acknowledged_at = now
            if self._intake.flush(_TICK):
                receiver.acknowledge()

    def _report_when_due(self) -> None:
        if time.monotonic() - self._reported_at > _REPORTED_EVERY:
            self._reported_at = time.monotonic()
            self._report(self.counts)


def _is_empty(message: Incoming) -> bool:
    """Whether it is an empty line, as some send to keep a connection open."""
    return message.fault is None and not message.data.strip()
