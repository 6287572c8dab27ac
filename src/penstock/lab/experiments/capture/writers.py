"""Two writers of an application: each changes a row of the table, and then writes the cache by itself."""

import random
import time
from dataclasses import dataclass, field
from threading import Event, Lock
from urllib.parse import urlsplit, urlunsplit

from penstock.errors import PenstockError
from penstock.lab.experiments.capture.copies import CacheCopy
from penstock.lab.experiments.capture.items import COUNT, Item, Items
from penstock.lab.run import Run
from penstock.settings import Secret
from penstock.testing.proxy import Proxy

_PATIENCE = 3.0
_IDLE = 0.02


@dataclass
class Race:
    """Two writes of one row: the first writer is held between its two writes, the second one overtakes it."""

    row: int
    committed: Event = field(default_factory=Event)
    overtaken: Event = field(default_factory=Event)


@dataclass
class Tally:
    """What the writers have done."""

    changes: int = 0  # committed in the table
    failed: int = 0  # second writes that did not come about
    crossed: int = 0  # second writes that put an older version in the place of a newer one
    lock: Lock = field(default_factory=Lock)

    def add(self, *, failed: bool = False, crossed: bool = False) -> None:
        with self.lock:
            self.failed += failed
            self.crossed += crossed


class Writer:
    """One of the application's processes, here a thread with connections of its own."""

    def __init__(self, run: Run, name: str, schema: str, redis: Secret | None, tally: Tally) -> None:
        self._run, self._name, self._tally = run, name, tally
        self._items = Items(run.settings, schema)
        self._proxy = Proxy(urlsplit(redis.value).port or 6379) if redis else None
        self._cache = (
            CacheCopy(_through(redis, self._proxy.port), run.name("own")) if redis and self._proxy else None
        )
        self._random = random.Random(name)  # noqa: S311
        self.wanted: list[int] = []  # rows to be changed at once
        self.fails_next = Event()
        self.race: tuple[Race, bool] | None = None  # and whether this writer is the one that is held

    def work(self, stopped: Event) -> None:
        """Change rows at half of the rate that the slider has, and what buttons ask for."""
        due = time.monotonic()
        while not stopped.is_set():
            if self.race is not None:
                race, is_held = self.race
                self.race = None
                self._overtaken(race) if is_held else self._overtaking(race)
            elif self.wanted:
                self._write(self.wanted.pop(0))
            elif (rate := self._run.value("rate") / 2) and time.monotonic() >= due:
                due = max(due + 1 / rate, time.monotonic() - 1)
                self._write(self._random.randrange(COUNT))
            stopped.wait(_IDLE)
        self._close()

    def _write(self, row: int) -> None:
        item = self._changed(row)
        time.sleep(self._random.uniform(0, self._run.value("pause") / 1000))
        self._put(item)

    def _overtaken(self, race: Race) -> None:
        item = self._changed(race.row)
        race.committed.set()
        race.overtaken.wait(_PATIENCE)
        self._put(item)

    def _overtaking(self, race: Race) -> None:
        race.committed.wait(_PATIENCE)
        self._put(self._changed(race.row))
        race.overtaken.set()

    def _changed(self, row: int) -> Item:
        """The first write: into the table."""
        item = self._items.change(row)
        with self._tally.lock:
            self._tally.changes += 1
        self._run.flow([{"copy": "table", "id": row, "version": item.version, "by": self._name}])
        return item

    def _put(self, item: Item) -> None:
        """The second write: into the cache, which may be away just now."""
        if self._cache is None or self._proxy is None:
            return
        event = {"copy": "own", "id": item.id, "version": item.version, "by": self._name}
        is_cut = self.fails_next.is_set()
        if is_cut:
            self._cut(self._proxy)
        try:
            before = self._cache.put(item.id, item.version, str(item.price))
        except Exception as error:  # whatever the client raises: an application that goes on is the point
            self._tally.add(failed=True)
            self._run.report(
                f"writer {self._name}: item {item.id}, version {item.version} is in the table, and the cache "
                f"did not get it: {type(error).__name__}"
            )
            self._run.flow([event | {"failed": True}])
            return
        finally:
            if is_cut:
                self._mend(self._proxy)
        if before > item.version:
            self._tally.add(crossed=True)
            self._run.report(
                f"writer {self._name}: item {item.id}, version {item.version} came behind version {before} "
                "and replaced it in the cache"
            )
        self._run.flow([event | {"crossed": before > item.version}])

    def _cut(self, proxy: Proxy) -> None:
        """Take the network to Redis away: the connection is cut, and no new one comes about."""
        self._target, proxy.target = proxy.target, 1
        proxy.cut()

    def _mend(self, proxy: Proxy) -> None:
        proxy.target = self._target
        self.fails_next.clear()

    def _close(self) -> None:
        self._items.close()
        if self._cache is not None and self._proxy is not None:
            self._cache.close()
            self._proxy.close()


def _through(address: Secret, port: int) -> Secret:
    """Return the address of Redis behind a proxy's port."""
    parts = urlsplit(address.value)
    user, _, _ = parts.netloc.rpartition("@")
    if not parts.hostname:
        raise PenstockError("the address of Redis names no host", hint="use redis://:password@host:port/0")
    return Secret(
        urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"))
    )
