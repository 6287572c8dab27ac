"""Repairs a copy: the ranges that differ are captured again, and what the source has not is deleted."""

from collections.abc import Iterator

from penstock.capture.requests import send
from penstock.capture.snapshot_request import SnapshotRequest
from penstock.replica.audit import Audit
from penstock.replica.differences import AuditReport, TableAudit
from penstock.replica.key_range import KeyRange
from penstock.replica.table_side import pieces

_AT_ONCE, _KEYS = 50, 200  # requests that wait in the capture, and keys in one of them


def repaired(audit: Audit, report: AuditReport) -> AuditReport:
    """Have all ranges with differences captured again; return what is found in them afterwards.

    Nothing is written to the copy: rows and deletions go through the log, in the order of the stream.
    """
    bad = [each for each in report.tables if each.differences]
    for piece in pieces((request for each in bad for request in _requests(each)), _AT_ONCE):
        for request in piece:
            send(request, audit.source)
        audit.arrival.wait()
    return audit.compare({each.table: each.bad for each in bad})


def _requests(audit: TableAudit) -> Iterator[SnapshotRequest]:
    """The ranges to read, and the keys to delete, if the source still has none of them."""
    for range in audit.bad if audit.is_sorted else [KeyRange()]:
        yield SnapshotRequest(audit.table, range.after, range.last)
    gone = [each.key for each in audit.differences if each.kind == "unexpected"]
    for piece in pieces(gone, _KEYS):
        yield SnapshotRequest(audit.table, gone[0], gone[0], tuple(piece))  # a range without rows
