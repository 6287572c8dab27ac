"""Whether a capture can go on: nothing is lost between its position and its slot."""

from penstock.capture import lsn as lsns
from penstock.capture.capture import Capture
from penstock.capture.position import Position
from penstock.capture.replication import System
from penstock.capture.slot import Slot
from penstock.errors import CaptureError, ChangesLostError


def again(capture: Capture) -> str:
    """Say what helps where changes were lost; nobody knows which events of an outbox were sent."""
    if capture.outbox is None:
        return f"`penstock capture run {capture.name} --snapshot-again` writes all rows again"
    return (
        f"`penstock capture remove {capture.name}` and add it again: it sends every event that is still in "
        f"{capture.outbox.table!r}, with the same id; or delete the topics that it wrote to before you add "
        "it, as for a store of events, which you publish again"
    )


def refuse_outbox(capture: Capture, old: Position) -> None:
    """Refuse to begin again with an outbox: what came since the position would never be sent."""
    if capture.outbox is not None and capture.outbox.table in old.tables:
        raise ChangesLostError(
            f"events of the outbox {capture.outbox.table!r} since the position are lost to the capture",
            hint=again(capture),
        )


def refuse_lost(capture: Capture, slot: Slot | None, position: Position, system: System, end: int) -> None:
    """Refuse to go on where changes between the position and the slot, or the server's end, are lost."""
    name, helps = capture.name, again(capture)
    if system.id != position.system.id:
        raise CaptureError(
            f"this is another PostgreSQL: its id is {system.id}, the position is of {position.system.id}",
            hint=f"point the connection at the right one; or, if it was restored from a dump, {helps}",
        )
    if system.timeline != position.system.timeline:
        raise CaptureError(
            f"PostgreSQL is on timeline {system.timeline}, the position is of timeline "
            f"{position.system.timeline}: another server has taken over, and may lack changes that are in "
            "the topics",
            hint=f"if the slot is a failover slot and no change was lost, `penstock capture run {name} "
            f"--accept-timeline`; otherwise {helps}",
        )
    if slot is None:
        raise ChangesLostError(
            "the slot is gone, and changes since the position with it", hint=f"who dropped it? {helps}"
        )
    if slot.status == "lost":
        raise ChangesLostError(
            "PostgreSQL has given up the slot: it was further behind than max_slot_wal_keep_size",
            hint=f"raise that setting; {helps}",
        )
    if slot.confirmed > position.lsn:
        raise ChangesLostError(
            f"the slot stands at {lsns.spell(slot.confirmed)}, beyond the position "
            f"{lsns.spell(position.lsn)}: it was made again or read by somebody else, and changes are lost",
            hint=helps,
        )
    if position.lsn > end:
        raise ChangesLostError(
            f"PostgreSQL's log ends at {lsns.spell(end)}, before the position {lsns.spell(position.lsn)}: it "
            "was set back, and what is in the topics has not happened any more",
            hint=helps,
        )
