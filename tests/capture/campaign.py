"""A database that is written to while its capture, its broker and itself are killed; then all is compared."""

import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

import psutil
import psycopg

from penstock.capture import Capture, Store
from penstock.errors import PenstockError
from penstock.local import Platform
from tests.capture.judge import differences
from tests.capture.process import CaptureProcess
from tests.capture.shop import TABLES, Shop

_PATIENCE = 180.0


@dataclass
class Outcome:
    """What a campaign did, and what was wrong in the end."""

    seed: int
    transactions: int
    faults: list[str]
    wrong: list[str]


def run_campaign(folder: Path, seed: int, seconds: float, *, rows: int, say=print) -> Outcome:
    """Write and kill for a while; the first kills come while the snapshot is written."""
    random = Random(seed)
    platform = Platform(folder / "data")
    settings = platform.up()
    shop = Shop(settings.dsn().value, Random(random.random()))
    writer = threading.Thread(target=shop.run, daemon=True)
    capture = CaptureProcess(settings, "shop", folder, "--chunk", "500")
    faults: list[str] = []
    try:
        shop.create(rows)
        Store(settings).put(Capture("shop", tables=TABLES, transactions=True))
        writer.start()
        capture.start()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(random.uniform(0.5, 4.0))
            fault = random.choices(["capture", "kafka", "postgres", "again"], [6, 1, 1, 1])[0]
            faults.append(fault)
            say(f"{len(faults)}: {fault}, {shop.transactions} transactions")
            _hurt(fault, platform, capture, settings)
        shop.stopped.set()
        writer.join(60)
        _await_end(settings, capture)
        return Outcome(seed, shop.transactions, faults, differences(settings, settings.dsn().value))
    finally:
        shop.stopped.set()
        capture.kill()
        platform.down()


def _hurt(fault: str, platform: Platform, capture: CaptureProcess, settings) -> None:
    if fault == "again":
        with suppress(psycopg.Error), psycopg.connect(settings.dsn().value, autocommit=True) as connection:
            request = 'snapshot penstock_shop {"path":"public.orders"}'
            connection.execute("select pg_logical_emit_message(true, 'penstock', %s)", [request])
    elif fault == "capture":
        capture.kill()
        capture.start()
    else:
        for process in _processes(platform, fault):
            process.kill()
        platform.up()
    if not capture.is_alive:
        capture.start()


def _processes(platform: Platform, service: str) -> list[psutil.Process]:
    found = next(each for each in platform.status() if each.name == service)
    return [psutil.Process(found.pid)] if found.pid else []


def _await_end(settings, capture: CaptureProcess) -> None:
    """Wait until the capture has come to where the database is."""
    with psycopg.connect(settings.dsn().value, autocommit=True) as connection:
        end = connection.execute("select (pg_current_wal_lsn() - '0/0')::int8").fetchone()[0]
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        if not capture.is_alive:
            capture.start()
        with suppress(PenstockError):
            position = Store(settings).position("shop")
            if (
                position is not None
                and position.lsn >= end
                and not position.pending
                and not position.requests
            ):
                return
        time.sleep(0.5)
    raise TimeoutError(f"the capture stays behind {end}; it said:\n{capture.log.read_text()[-3000:]}")
