"""A database's tables in another database: a copy that follows through the log."""

from penstock.replica.audit import Audit, auditing
from penstock.replica.differences import AuditReport, Difference
from penstock.replica.repair import repaired
from penstock.replica.replica import Replica
from penstock.replica.runner import ReplicaRunner

__all__ = ["Audit", "AuditReport", "Difference", "Replica", "ReplicaRunner", "auditing", "repaired"]
