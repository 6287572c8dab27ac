"""The bank's process manager in a process of its own, for tests to kill: python bank_process.py STORE"""

import signal
import sys
import threading

from penstock.apps.bank.transfers import Bank
from penstock.settings import Settings
from penstock.sourcing import EventStore


def main() -> None:
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    with EventStore(sys.argv[1], Settings.load()) as store:
        Bank(store).process().run(stopped)


if __name__ == "__main__":
    main()
