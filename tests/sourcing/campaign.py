"""A bank at work while its clerks, database, publisher, process manager and projections are killed."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import psycopg

from penstock.apps.bank.demo import MODULE, QUICK
from penstock.apps.bank.pipeline import STORE, accounts
from penstock.capture import Store
from penstock.errors import PenstockError
from penstock.local import Platform
from penstock.local.ports import any_free
from penstock.log import Broker, apply
from penstock.settings import Settings
from penstock.sourcing import EventStore, publish
from tests.capture.campaign import Outcome, kill_service
from tests.derived.process import Process
from tests.sourcing.clerks import CLOSING
from tests.sourcing.fold import folded
from tests.sourcing.judge import differences
from tests.sourcing.reader import Reader

FAULTS = {"clerks": 3, "postgres": 2, "publisher": 3, "process": 3, "flows": 2, "kafka": 1}
AT_ONCE = (1, 1, 1, 2, 3)  # of them
ROOT = Path(__file__).parents[2]
_PATIENCE = 600.0


def run_campaign(folder: Path, seed: int, seconds: float, *, log: Callable[[str], None] = print) -> Outcome:
    """Work and kill for a while; then let all come to their end, and compare."""
    random = Random(seed)
    platform = Platform(folder / "data", any_free(), any_free())  # of its own: a killed server's is free
    settings = platform.up()
    world = _World(settings, platform, folder, seed)
    faults: list[str] = []
    try:
        with EventStore(STORE, settings) as store:
            store.create()
            apply([accounts], Broker(settings))
            publish(store, partitions=accounts.partitions)
            reader = Reader(store)
            world.start()
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                world.live(random.uniform(1.0, 10.0))
                chosen = {*random.choices([*FAULTS], [*FAULTS.values()], k=random.choice(AT_ONCE))}
                faults += sorted(chosen)
                log(f"{len(faults)}: {' and '.join(sorted(chosen))}, {len(reader.seen)} events")
                world.kill(*sorted(chosen))
            world.finish(reader)
            wrong = [*map(repr, reader.errors), *differences(settings, folder, reader.seen)]
            log(f"{len(reader.seen)} events")
            return Outcome(seed, _transactions(settings), faults, wrong)
    finally:
        world.end()
        platform.down()


def _transactions(settings: Settings) -> int:
    with psycopg.connect(settings.dsn().value) as connection:
        asked = f"select count(distinct transaction) from {STORE}.events"
        return int(connection.execute(asked).fetchone()[0])


class _World:
    """All that works at the bank, as processes that are started again when they are gone."""

    def __init__(self, settings: Settings, platform: Platform, folder: Path, seed: int) -> None:
        self._settings, self._platform, self._folder = settings, platform, folder
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        environment = settings.environment() | {"PYTHONPATH": paths}
        quick = [word for name, value in QUICK.items() for word in ("--conf", f"{name}={value}")]
        run = ("run", "bank", "-m", MODULE, *quick)
        commands = {
            "publisher": ("store", "publish", STORE, "--partitions", str(accounts.partitions)),
            "process": ("bank", "process", "--store", STORE),
            "flows": run,
        }
        self.processes = {name: Process(name, each, folder, environment) for name, each in commands.items()}
        self.processes["clerks"] = Process(
            "clerks", (str(seed),), folder, environment, module="tests.sourcing.clerks"
        )
        self._home: set[str] = set()  # what has done its work
        self._once = Process("once", (*run, "--once"), folder, environment)

    def start(self) -> None:
        for name, each in self.processes.items():
            if name not in self._home:
                each.start()

    def live(self, seconds: float) -> None:
        """Let them work, and start again what ended by itself."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.start()
            time.sleep(0.5)

    def kill(self, *names: str) -> None:
        """Kill some at once; a server is started again."""
        for name in names:
            if name in self.processes:
                self.processes[name].kill()
        for name in names:
            if name not in self.processes:
                kill_service(self._platform, name)

    def end(self) -> None:
        for each in (*self.processes.values(), self._once):
            each.kill()

    def finish(self, reader: Reader) -> None:
        """Let the clerks go home, transfers end, the publisher and then the projections come to the end."""
        (self._folder / CLOSING).touch()
        self._home.add("clerks")
        if self.processes["clerks"].run(_PATIENCE) != 0:
            raise AssertionError("the clerks broke")
        self._await(lambda: not folded(self._settings).unfinished, "the end of all transfers")
        self._send_home("process")
        with psycopg.connect(self._settings.dsn().value, autocommit=True) as connection:
            end = connection.execute("select (pg_current_wal_lsn() - '0/0')::int8").fetchone()[0]
        self._await(lambda: self._is_published(end), "the publisher")
        self._await(lambda: len(reader.seen) >= len(folded(self._settings).events), "the reader")
        reader.stop()
        self._send_home("flows")
        if self._once.run(_PATIENCE) != 0:
            raise AssertionError("the projections do not come to their end")

    def _send_home(self, name: str) -> int:
        self._home.add(name)
        return self.processes[name].stop()

    def _await(self, reached: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not reached():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come")
            self.live(0.5)

    def _is_published(self, end: int) -> bool:
        with suppress(PenstockError):
            found = Store(self._settings).position(f"{STORE}_events")
            return bool(found and found.lsn >= end and not found.pending and not found.requests)
        return False
