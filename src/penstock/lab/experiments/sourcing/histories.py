"""Histories of 10, 1,000 and 100,000 events: how long loading takes without a snapshot, and with one."""

import time
from collections.abc import Iterator
from decimal import Decimal
from statistics import median
from threading import Event

from penstock.apps.bank.account import Account, Deposited, Opened, Withdrawn, account
from penstock.lab.run import Run
from penstock.sourcing import DomainEvent, EventStore, Loaded, Repository

LENGTHS = (10, 1_000, 100_000)
BEHIND = 50  # events that came after the snapshot: with one each 100 events, 50 on average
_PAGE = 5_000
_TRIES = 5


class Histories:
    """Makes a stream of each length and measures it, then keeps a snapshot and measures again."""

    def __init__(self, run: Run, store: EventStore, most: int) -> None:
        self._run, self._store = run, store
        self._accounts: Repository[Account] = Repository(store, account)
        self._lengths = [each for each in LENGTHS if each <= most]

    def work(self, stopped: Event) -> None:
        """Go through all lengths, the short ones first."""
        for length in self._lengths:
            kept = self._fill(length, stopped)
            if stopped.is_set():
                return
            stream = f"history-{length}"
            self._run.show(**{f"plain_{length}": self._measured(stream)})
            if kept.version:
                self._accounts.keep(stream, kept)
            self._run.show(
                **{f"kept_{length}": self._measured(stream), f"behind_{length}": self._behind(stream)}
            )
            self._run.report(f"a history of {length:,} events is loaded without a snapshot, and with one")
        self._run.show(measured=len(self._lengths))

    def _fill(self, length: int, stopped: Event) -> Loaded[Account]:
        """Append so many events; return the state that a snapshot holds, none where there are too few."""
        stream, version, state, kept = f"history-{length}", 0, account.initial, Loaded(account.initial)
        last = length - BEHIND
        for events in _events(length, {last} if last > 0 else set()):
            if stopped.is_set():
                break
            self._store.append(self._accounts.appending(stream, version, events))
            version, state = version + len(events), account.fold(events, state)
            self._run.show(filled={"length": length, "done": version})
            if version == last:
                kept = Loaded(state, version)
        return kept

    def _measured(self, stream: str) -> float:
        """Return the median of some loads in milliseconds; of long ones there are fewer."""
        taken: list[float] = []
        while len(taken) < _TRIES and sum(taken) < 1000:
            began = time.perf_counter()
            self._accounts.load(stream)
            taken.append((time.perf_counter() - began) * 1000)
        return round(median(taken), 2)

    def _behind(self, stream: str) -> int:
        return self._accounts.load(stream).behind


def _events(length: int, cuts: set[int]) -> Iterator[tuple[DomainEvent, ...]]:
    """Yield pages of a history: the account is opened, and money comes and goes."""
    pair = Deposited(Decimal("5.00")), Withdrawn(Decimal("2.00"))
    ends = sorted({*range(_PAGE, length, _PAGE), *cuts, length})
    begin = 0
    for end in ends:
        opened: tuple[DomainEvent, ...] = (Opened("Ada"),) if begin == 0 else ()
        yield opened + tuple(pair[number % 2] for number in range(begin + len(opened), end))
        begin = end
