"""A database's tables in another database: a copy that follows through the log."""

from penstock.replica.replica import Replica
from penstock.replica.runner import ReplicaRunner

__all__ = ["Replica", "ReplicaRunner"]
