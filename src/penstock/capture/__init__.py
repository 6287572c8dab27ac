"""Changes out of databases: every change of a captured table as a record of its topic."""

from penstock.capture.capture import Capture, Outbox
from penstock.capture.runner import Runner
from penstock.capture.store import State, Store
from penstock.capture.wishes import Wishes

__all__ = ["Capture", "Outbox", "Runner", "State", "Store", "Wishes"]
