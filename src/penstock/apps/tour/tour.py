"""The tour itself: send, read with three members, kill one, and count what happened."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.apps.tour.member import GROUP
from penstock.apps.tour.payments import make_payments, payments
from penstock.documents import JsonObject
from penstock.errors import InternalError
from penstock.log import Broker, Groups, Producer, apply
from penstock.settings import Settings

MEMBERS = 3
PATIENCE = 120.0
Progress = Callable[[str, int, int], None]


@dataclass
class Report:
    """What was sent and what was read; offsets are counted one by one, so nothing is estimated."""

    sent: int = 0
    sent_seconds: float = 0.0
    read_seconds: float = 0.0
    noticed_seconds: float = 0.0
    killed: str = ""
    rebalances: int = 0
    lag: int = 0
    kept: dict[int, int] = field(default_factory=dict)
    reads: dict[int, Counter[int]] = field(default_factory=dict)

    @property
    def distinct(self) -> int:
        return sum(len(offsets) for offsets in self.reads.values())

    @property
    def repeated(self) -> int:
        return sum(offsets.total() - len(offsets) for offsets in self.reads.values())

    @property
    def complete(self) -> bool:
        """Whether every event that was sent was read, and the group stands at the end."""
        return self.distinct == self.sent == sum(self.kept.values()) and self.lag == 0


def take_tour(settings: Settings, count: int, progress: Progress) -> Report:
    """Send `count` payments and read them with a group of three, one of them killed with -9 on the way."""
    report = Report()
    apply([payments], Broker(settings))
    _send(settings, count, report, progress)
    report.kept = {
        number: high - low for number, (low, high) in Broker(settings).offsets(payments.name).items()
    }
    members = [_Member(number, settings) for number in range(MEMBERS)]
    try:
        _read(members, report, progress)
    finally:
        for member in members:
            member.stop()
    report.lag = sum(lag.events for lag in Groups(settings).lag(GROUP))
    return report


def _send(settings: Settings, count: int, report: Report, progress: Progress) -> None:
    began = time.monotonic()
    with Producer(settings) as producer:
        for number, payment in enumerate(make_payments(count), 1):
            producer.send(payments, payment)
            if number % 1000 == 0:
                progress("sending", number, count)
    report.sent, report.sent_seconds = producer.sent, time.monotonic() - began


def _read(members: list["_Member"], report: Report, progress: Progress) -> None:
    """Take the members' reports until everything was read; the first to report something is killed."""
    lines: queue.Queue[tuple[_Member, JsonObject]] = queue.Queue()
    for member in members:
        member.start(lines)
    began = time.monotonic()
    killed_at: float | None = None
    while report.distinct < report.sent:
        member, line = _next(lines, began)
        _count(line, report)
        progress("reading", report.distinct, report.sent)
        if "rebalance" in line and killed_at and not report.noticed_seconds:
            report.noticed_seconds = time.monotonic() - killed_at
        if "first" in line and killed_at is None:
            member.kill()
            report.killed, killed_at = member.name, time.monotonic()
    report.read_seconds = time.monotonic() - began


def _next(lines: "queue.Queue[tuple[_Member, JsonObject]]", began: float) -> tuple["_Member", JsonObject]:
    try:
        return lines.get(timeout=max(0.1, began + PATIENCE - time.monotonic()))
    except queue.Empty:
        raise InternalError(f"not everything was read within {PATIENCE:.0f} s") from None


def _count(line: JsonObject, report: Report) -> None:
    if "rebalance" in line:
        report.rebalances += 1
    else:
        offsets = report.reads.setdefault(line["partition"], Counter())
        offsets.update(range(line["first"], line["last"] + 1))


class _Member:
    """A member process and the thread that listens to it."""

    def __init__(self, number: int, settings: Settings) -> None:
        self.name = f"member {number}"
        self._environment = os.environ | settings.environment()
        self._process: subprocess.Popen[str] | None = None

    def start(self, lines: "queue.Queue[tuple[_Member, JsonObject]]") -> None:
        command = [sys.executable, "-m", "penstock.apps.tour.member"]
        process = subprocess.Popen(command, env=self._environment, stdout=subprocess.PIPE, text=True)
        self._process = process

        def listen() -> None:
            for line in process.stdout or ():
                if line.endswith("\n"):  # the last line of a killed process may be half a line
                    lines.put((self, json.loads(line)))

        threading.Thread(target=listen, daemon=True).start()

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """End the member cleanly, so that it commits what it has read."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
