"""A database that is written to while its capture, its copies and their systems are killed; then compared."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import psutil
import psycopg

from penstock.capture import Capture, Store
from penstock.errors import PenstockError
from penstock.local import Platform
from penstock.local.ports import any_free
from penstock.settings import Settings
from tests.capture.campaign import Outcome
from tests.capture.shop import Shop
from tests.derived.judge import differences
from tests.derived.process import Process

MODULE = Path(__file__).with_name("copies.py")
SERVICES = ("kafka", "postgres", "redis")
FAULTS = {"capture": 2, "copies": 3, "replica": 2, "kafka": 1, "postgres": 1, "redis": 2, "again": 1}
_PATIENCE = 900.0


def run_campaign(
    folder: Path, seed: int, seconds: float, *, rows: int, log: Callable[[str], None] = print
) -> Outcome:
    """Write and kill for a while; then let all come to their end, and compare."""
    random = Random(seed)
    ports = [any_free() for _ in SERVICES]  # of its own: a killed server's is free
    platform = Platform(folder / "data", *ports[:2], services=SERVICES, redis_port=ports[2])
    settings = platform.up()
    shop = Shop(settings.dsn().value, Random(random.random()))
    writer = threading.Thread(target=shop.run, daemon=True)
    world = _World(settings, platform, folder)
    faults: list[str] = []
    try:
        shop.create(rows)
        Store(settings).put(Capture("shop", tables=("public.orders", "public.lines")))
        writer.start()
        world.start()
        time.sleep(10)
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(random.uniform(2.0, 12.0))
            faults.append(random.choices([*FAULTS], [*FAULTS.values()])[0])
            log(f"{len(faults)}: {faults[-1]}, {shop.transactions} transactions")
            world.hurt(faults[-1])
        shop.stopped.set()
        writer.join(60)
        world.finish()
        return Outcome(seed, shop.transactions, faults, world.differences())
    finally:
        shop.stopped.set()
        world.kill()
        platform.down()


class _World:
    """All that is derived from the database, and what keeps it so."""

    def __init__(self, settings: Settings, platform: Platform, folder: Path) -> None:
        self._settings, self._platform, self._folder = settings, platform, folder
        environment = settings.environment() | {"COPIES": str(folder)}
        commands = {
            "capture": ("capture", "run", "shop"),
            "copies": ("run", "copies", "-m", str(MODULE)),
            "replica": ("replica", "run", "copy", "--capture", "shop", "--schema", "replica"),
        }
        self._processes = {
            name: Process(name, command, folder, environment) for name, command in commands.items()
        }
        once = ("run", "copies", "-m", str(MODULE), "--once")
        self._once = Process("once", once, folder, environment)

    def start(self) -> None:
        for each in self._processes.values():
            each.start()

    def kill(self) -> None:
        for each in (*self._processes.values(), self._once):
            each.kill()

    def hurt(self, fault: str) -> None:
        if fault in self._processes:
            self._processes[fault].kill()
        elif fault == "again":
            self._snapshot_again()
        else:
            found = next(each for each in self._platform.status() if each.name == fault)
            if found.pid:
                psutil.Process(found.pid).kill()
            self._platform.up()
        self.start()

    def _snapshot_again(self) -> None:
        request = 'snapshot penstock_shop {"path":"public.orders"}'
        with (
            suppress(psycopg.Error),
            psycopg.connect(self._settings.dsn().value, autocommit=True) as connection,
        ):
            connection.execute("select pg_logical_emit_message(true, 'penstock', %s)", [request])

    def finish(self) -> None:
        """Let the capture come to where the database is, then the copies to where the capture is."""
        with psycopg.connect(self._settings.dsn().value, autocommit=True) as connection:
            end = connection.execute("select (pg_current_wal_lsn() - '0/0')::int8").fetchone()[0]
        deadline = time.monotonic() + _PATIENCE
        while not self._is_captured(end):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the capture stays behind {end}:\n{self.said('capture')}")
            self.start()
            time.sleep(0.5)
        self._processes["copies"].stop()
        if self._once.run(_PATIENCE) != 0:
            raise AssertionError(f"the copies do not come to their end:\n{self.said('once')}")

    def _is_captured(self, end: int) -> bool:
        with suppress(PenstockError):
            found = Store(self._settings).position("shop")
            return bool(found and found.lsn >= end and not found.pending and not found.requests)
        return False

    def differences(self) -> list[str]:
        """Compare; the replica follows by itself, and is given time."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            found = differences(self._settings, self._folder, replica=True)
            behind = [each for each in found if each.startswith("replica")]
            if not behind or len(behind) < len(found) or time.monotonic() > deadline:
                return found
            self.start()
            time.sleep(2)

    def said(self, name: str) -> str:
        log = self._folder / f"{name}.log"
        return log.read_text()[-4000:] if log.exists() else ""
