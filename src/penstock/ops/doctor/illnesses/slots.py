"""Slots: one that nobody reads makes a database keep its log, and one that is lost has lost changes."""

from collections.abc import Iterator

from penstock.capture.status import CaptureStatus
from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes, Slot
from penstock.ops.doctor.spelling import size
from penstock.ops.model import System

ID = "capture.slot"
_MUCH = 256 * 2**20  # bytes of the database's log
_LOST = ("lost", "unreserved")


def slots(system: System, probes: Probes) -> Iterator[Finding]:
    """Find captures whose slot is lost or retains much, and slots of nobody that do."""
    for capture in system.captures:
        if capture.slot in _LOST:
            yield _lost(capture.capture, capture.slot)
        elif (capture.retained or 0) > _MUCH:
            yield _grown(capture)
    own = {each.name for each in probes.slots if any(_is_of(each, known) for known in system.captures)}
    for slot in probes.slots:
        if slot.name not in own and not slot.active and slot.status in _LOST:
            yield _lost(f"{slot.connection}/{slot.name}", slot.status)
        elif slot.name not in own and not slot.active and slot.retained > _MUCH:
            yield _unread(slot)


def _is_of(slot: Slot, capture: CaptureStatus) -> bool:
    """Whether a slot has the name that captures give theirs; a namespace puts marks around it."""
    name = capture.capture
    named = slot.name.startswith("penstock_") and f"_{name[:32]}_" in slot.name
    return slot.name == f"penstock_{name}" or named


def _lost(subject: str, status: str) -> Finding:
    gone = status == "lost"
    return Finding(
        ID,
        "error",
        subject,
        "its slot is lost: the database has deleted changes that were not captured"
        if gone
        else "its slot is about to be lost: the database may delete the log it needs at its next checkpoint",
        {"slot": status},
        "it was behind by more than max_slot_wal_keep_size",
        "capture anew: `penstock capture remove`, `add` and a snapshot; and raise max_slot_wal_keep_size"
        if gone
        else "run the capture now, and raise max_slot_wal_keep_size",
    )


def _grown(capture: CaptureStatus) -> Finding:
    return Finding(
        ID,
        "warning",
        capture.capture,
        f"the database keeps {size(capture.retained or 0)} of its log for it",
        {
            "retained_bytes": capture.retained or 0,
            "behind_bytes": capture.behind or 0,
            "state": capture.state,
        },
        "it is not running" if capture.state != "running" else "it can't keep up, or a transaction is long",
        f"start it: `penstock capture run {capture.capture}`"
        if capture.state != "running"
        else "see `penstock capture status`, and end transactions that are open for hours",
    )


def _unread(slot: Slot) -> Finding:
    return Finding(
        ID,
        "warning",
        f"{slot.connection}/{slot.name}",
        f"nobody reads this slot, and the database keeps {size(slot.retained)} of its log for it",
        {"retained_bytes": slot.retained, "active": "no", "status": slot.status},
        "whoever made it has stopped or is gone",
        f"start its reader; if there is none any more: select pg_drop_replication_slot('{slot.name}')",
    )
