"""Stuck transactions: one that is open holds up everybody who reads committed events."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Evidence, Finding, Fix
from penstock.ops.doctor.probes import Held, OpenTransaction, Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import System

ID = "transactions.stuck"
LONG = 60.0  # seconds that a transaction may be open
_ENDED = ("stopped", "done", "failed")


def stuck_transactions(system: System, probes: Probes) -> Iterator[Finding]:
    """Find partitions whose committed end has stood for a minute before an open transaction."""
    named: set[str] = set()
    for held in probes.held:
        if system.at - held.since < LONG:
            continue
        open_there = [each for each in probes.transactions if _holds(each, held)]
        owner = min(open_there, key=lambda each: each.started, default=None)  # others began behind it
        if owner is None:
            yield _finding(system, held, None)
        elif owner.id not in named:
            named.add(owner.id)
            yield _finding(system, held, owner)


def _holds(transaction: OpenTransaction, held: Held) -> bool:
    return (held.topic, held.partition) in transaction.partitions


def _finding(system: System, held: Held, owner: OpenTransaction | None) -> Finding:
    subject = owner.id if owner else f"{held.topic}[{held.partition}]"
    age = system.at - (owner.started if owner else held.since)
    known: Evidence = {"timeout_seconds": owner.timeout, "transactional_id": owner.id} if owner else {}
    return Finding(
        ID,
        "warning",
        subject,
        f"a transaction in {held.topic}[{held.partition}] has been open for {spelled(age)}: "
        f"{held.end - held.stable:,} records behind it can't be read",
        {
            "topic": held.topic,
            "partition": held.partition,
            "stable": held.stable,
            "end": held.end,
            "seconds": round(age, 1),
            **known,
        },
        "its producer died or hangs between begin and commit"
        + (f"; the broker aborts it {spelled(owner.timeout)} after it began" if owner else ""),
        "end the producer, or start it again: a producer of the same transactional.id aborts what is open",
        _fix(system, owner),
    )


def _fix(system: System, owner: OpenTransaction | None) -> Fix | None:
    """Fencing a writer is safe only where it is one of a flow that is known not to be at work."""
    if owner is None:
        return None
    own = [each for each in system.flows if owner.id.startswith(f"{each.identity.group}.")]
    resting = [each for each in own if each.state in _ENDED or each.is_silent(system.at)]
    command = f"abort the transaction of {owner.id} (init_transactions fences its dead writer)"
    return Fix("abort-transaction", owner.id, command) if own and resting == own else None
