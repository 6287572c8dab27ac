"""Writers of an event store in processes of their own, which conflict and roll back."""

import json
import random
import subprocess
import sys
import threading
from collections import Counter
from decimal import Decimal

import psycopg

from penstock.apps.bank.account import Deposited, account
from penstock.errors import ConflictError
from penstock.settings import Settings
from penstock.sourcing import Append, EventStore

PROCESSES, THREADS, STREAMS = 4, 8, 150


class Writers:
    """32 writers in four processes."""

    def __init__(self, settings, store, appends, seed):
        self._settings, self._store, self._appends, self._seed = settings, store, appends, seed
        self.conflicts = self.rollbacks = 0

    def run(self):
        """Write, and return (stream, version, id) of all that was committed."""
        address = self._settings.dsn().value
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.event_store", self._store, *map(str, (each, seed))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for each, seed in [(self._appends // PROCESSES, self._seed + n) for n in range(PROCESSES)]
        ]
        for each in started:
            each.stdin.write(address + "\n")
            each.stdin.close()
        found = [json.loads(each.stdout.read()) for each in started]
        assert [each.wait() for each in started] == [0] * PROCESSES
        self.conflicts = sum(each["conflicts"] for each in found)
        self.rollbacks = sum(each["rollbacks"] for each in found)
        return [tuple(item) for each in found for item in each["written"]]


def dense(events):
    """Whether each stream has the versions 1, 2, 3, … once."""
    found = {}
    for stream, version, _ in events:
        found.setdefault(stream, []).append(version)
    return all(sorted(each) == list(range(1, len(each) + 1)) for each in found.values())


def same_order(events):
    """Whether the events of each stream come by version."""
    newest = Counter()
    for stream, version, _ in events:
        if version != newest[stream] + 1:
            return False
        newest[stream] = version
    return True


class _Work:
    def __init__(self, store, address, appends):
        self.store, self.address, self.left = store, address, appends
        self.lock = threading.Lock()
        self.written, self.conflicts, self.rollbacks = [], 0, 0

    def write(self, seed):
        chance = random.Random(seed)
        with psycopg.connect(self.address) as own:
            while self._take():
                while not self._once(chance, own):
                    pass

    def _take(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    def _once(self, chance, own):
        """Append to one or two streams as they are now; in a transaction of our own at times, or undone."""
        streams = chance.sample(range(STREAMS), chance.choice([1, 1, 1, 2]))
        appends = [
            Append(
                "account",
                f"s{each}",
                self.store.version("account", f"s{each}"),
                tuple(Deposited(Decimal(1)) for _ in range(chance.choice([1, 1, 3]))),
                account.types,
            )
            for each in streams
        ]
        is_own, is_undone = chance.random() < 0.2, chance.random() < 0.1
        try:
            if is_own or is_undone:
                own.execute("SELECT pg_current_xact_id()")  # an old number, for the order to deal with
            records = self.store.append(*appends, connection=own if is_own or is_undone else None)
        except ConflictError:
            own.rollback()
            with self.lock:
                self.conflicts += 1
            return False
        if is_undone:
            own.rollback()
            with self.lock:
                self.rollbacks += 1
            return False
        own.commit()
        with self.lock:
            self.written += [(each.stream, each.version, each.id) for each in records]
        return True


def main():
    name, appends, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    address = sys.stdin.readline().strip()
    from penstock.settings import Secret

    with EventStore(name, Settings(postgres=Secret(address)), size=THREADS) as store:
        work = _Work(store, address, appends)
        threads = [threading.Thread(target=work.write, args=(seed * 100 + each,)) for each in range(THREADS)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    json.dump({"written": work.written, "conflicts": work.conflicts, "rollbacks": work.rollbacks}, sys.stdout)


if __name__ == "__main__":
    main()
