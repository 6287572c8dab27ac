"""A database that is written to while its capture, its broker and itself are killed; then all is compared."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil

from penstock.capture import Store
from penstock.errors import PenstockError
from penstock.local import Platform
from penstock.local.ports import any_free
from tests.capture.process import CaptureProcess
from tests.capture.subjects import SUBJECTS, Subject

_PATIENCE = 180.0


@dataclass
class Outcome:
    """What a campaign did, and what was wrong in the end."""

    seed: int
    transactions: int
    faults: list[str]
    wrong: list[str]

    def report(self, folder: Path, verdict: str) -> int:
        """Print what came of it, with the processes' logs if something is wrong; return an exit code."""
        for each in self.wrong:
            print(each)
        for log in sorted(folder.glob("*.log")) if self.wrong else ():
            print(f"== {log.name}\n{log.read_text()[-3000:]}")
        print(f"{len(self.faults)} faults, {self.transactions} transactions")
        print("NOT OK" if self.wrong else verdict)
        return 1 if self.wrong else 0


def run_campaign(
    folder: Path, seed: int, seconds: float, *, rows: int, database: str = "postgres", say=print
) -> Outcome:
    """Write and kill for a while; the first kills come while the snapshot is written."""
    random = Random(seed)
    platform = Platform(folder / "data", any_free(), any_free())  # of its own: a killed server's is free
    subject = SUBJECTS[database](folder, platform, Random(random.random()))
    settings, shop = subject.settings, subject.shop
    writer = threading.Thread(target=shop.run, daemon=True)
    capture = CaptureProcess(settings, "shop", folder, "--chunk", "500")
    faults: list[str] = []
    try:
        shop.create(rows)
        Store(settings).put(subject.capture)
        writer.start()
        capture.start()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(random.uniform(0.5, 4.0))
            fault = random.choices(["capture", "kafka", "database", "again"], [6, 1, 1, 1])[0]
            faults.append(fault)
            say(f"{len(faults)}: {fault}, {shop.transactions} transactions")
            _hurt(fault, platform, capture, subject)
        shop.stopped.set()
        writer.join(60)
        _await_end(subject, capture)
        return Outcome(seed, shop.transactions, faults, subject.differences())
    finally:
        shop.stopped.set()
        capture.kill()
        subject.close()
        platform.down()


def _hurt(fault: str, platform: Platform, capture: CaptureProcess, subject: Subject) -> None:
    if fault == "again":
        subject.read_again()
    elif fault == "capture":
        capture.kill()
        capture.start()
    elif fault == "database":
        subject.kill()
    else:
        kill_service(platform, fault)
    if not capture.is_alive:
        capture.start()


def kill_service(platform: Platform, service: str) -> None:
    """Kill a service of the platform, and start it again."""
    found = next(each for each in platform.status() if each.name == service)
    if found.pid:
        psutil.Process(found.pid).kill()
    platform.up()


def _await_end(subject: Subject, capture: CaptureProcess) -> None:
    """Wait until the capture has come to where the database is; as long as it gets on, it is waited for."""
    end, deadline, position = subject.end(), time.monotonic() + _PATIENCE, None
    while time.monotonic() < deadline:
        if not capture.is_alive:
            capture.start()
        with suppress(PenstockError):
            before, position = position, Store(subject.settings).position("shop")
            if position != before:
                deadline = time.monotonic() + _PATIENCE
            if (
                position is not None
                and position.lsn >= end
                and not position.pending
                and not position.requests
                and position.taken >= len(Store(subject.settings).get("shop").requests)
            ):
                return
        time.sleep(0.5)
    raise TimeoutError(f"{position} stays behind {end}; it said:\n{capture.log.read_text()[-3000:]}")
