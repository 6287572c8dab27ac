"""The bank's own processes: `python -m penstock.apps.bank.worker publish|transfers STORE`."""

import signal
import sys
import threading

from penstock.apps.bank.transfers import Bank
from penstock.capture import Runner, Wishes
from penstock.settings import Settings
from penstock.sourcing import EventStore
from penstock.sourcing import publish as declare

PARTITIONS = 2


def publish(store: EventStore, stopped: threading.Event) -> None:
    """Write the store's events to the log."""
    capture = declare(store, partitions=PARTITIONS)
    Runner(store.settings, capture.name, Wishes(stopped=stopped)).run()


def transfers(store: EventStore, stopped: threading.Event) -> None:
    """Carry transfers out."""
    Bank(store).process().run(stopped)


def main() -> None:
    """Work until SIGTERM."""
    work, name = {"publish": publish, "transfers": transfers}[sys.argv[1]], sys.argv[2]
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who has started it
    with EventStore(name, Settings.load()) as store:
        work(store, stopped)


if __name__ == "__main__":
    main()
