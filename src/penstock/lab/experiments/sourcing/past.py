"""The past of one account: its state at a moment, and its whole history replayed from the first event."""

import time
from datetime import UTC, datetime, timedelta

from penstock.apps.bank.account import Account, account
from penstock.documents import Json
from penstock.sourcing import EventStore, Repository


class Past:
    """Asks the store of what was; nothing is changed."""

    def __init__(self, store: EventStore, stream: str) -> None:
        self._store, self._stream = store, stream
        self._accounts: Repository[Account] = Repository(store, account)

    def now(self) -> dict[str, Json]:
        """Derive the balance as a command does: the last snapshot, and the events behind it."""
        began = time.perf_counter()
        found = self._accounts.load(self._stream)
        return {
            "balance": float(found.state.balance),
            "version": found.version,
            "load_ms": _milliseconds(began),
            "behind": found.behind,
        }

    def ago(self, seconds: float) -> dict[str, Json]:
        """Derive the balance at a moment in the past."""
        moment = datetime.now(UTC) - timedelta(seconds=seconds)
        found = self._accounts.load(self._stream, until=moment)
        return {
            "past_balance": float(found.state.balance),
            "past_version": found.version,
            "past_at": moment.isoformat(),
        }

    def replayed(self) -> dict[str, Json]:
        """Add all events up again, from the first one on, without any snapshot."""
        began, count, state = time.perf_counter(), 0, account.initial
        for record in self._store.read(account.category, self._stream):
            state = account.fold(account.types.events_of(record), state)
            count += 1
        return {
            "replay_events": count,
            "replay_balance": float(state.balance),
            "replay_ms": _milliseconds(began),
        }


def _milliseconds(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 2)
