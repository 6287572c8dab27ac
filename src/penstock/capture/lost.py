"""Whether a capture can go on: nothing is lost between its position and its slot."""

from penstock.capture import lsn as lsns
from penstock.capture.position import Position
from penstock.capture.replication import System
from penstock.capture.slot import Slot
from penstock.errors import CaptureError, ChangesLostError


def refuse_lost(name: str, slot: Slot | None, position: Position, system: System, end: int) -> None:
    """Refuse to go on where changes between the position and the slot, or the server's end, are lost."""
    again = f"`penstock capture run {name} --snapshot-again` writes all rows again"
    if system.id != position.system.id:
        raise CaptureError(
            f"this is another PostgreSQL: its id is {system.id}, the position is of {position.system.id}",
            hint=f"point the connection at the right one; or, if it was restored from a dump, {again}",
        )
    if system.timeline != position.system.timeline:
        raise CaptureError(
            f"PostgreSQL is on timeline {system.timeline}, the position is of timeline "
            f"{position.system.timeline}: another server has taken over, and may lack changes that are in "
            "the topics",
            hint=f"if the slot is a failover slot and no change was lost, `penstock capture run {name} "
            f"--accept-timeline`; otherwise {again}",
        )
    if slot is None:
        raise ChangesLostError(
            "the slot is gone, and changes since the position with it", hint=f"who dropped it? {again}"
        )
    if slot.status == "lost":
        raise ChangesLostError(
            "PostgreSQL has given up the slot: it was further behind than max_slot_wal_keep_size",
            hint=f"raise that setting; {again}",
        )
    if slot.confirmed > position.lsn:
        raise ChangesLostError(
            f"the slot stands at {lsns.spell(slot.confirmed)}, beyond the position "
            f"{lsns.spell(position.lsn)}: it was made again or read by somebody else, and changes are lost",
            hint=again,
        )
    if position.lsn > end:
        raise ChangesLostError(
            f"PostgreSQL's log ends at {lsns.spell(end)}, before the position {lsns.spell(position.lsn)}: it "
            "was set back, and what is in the topics has not happened any more",
            hint=again,
        )
