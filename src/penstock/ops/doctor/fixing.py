"""Carries out the doctor's safe fixes, the only place of the operations that changes anything."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from penstock.control import audit
from penstock.control.audit import AUDIT, recorded
from penstock.errors import InternalError, TopicError
from penstock.log import Broker, Topic, apply, plan
from penstock.log.client import asking
from penstock.log.transactional_producer import TransactionalProducer
from penstock.ops.doctor.declared import Declared
from penstock.ops.doctor.finding import Finding, Fix
from penstock.ops.doctor.illnesses.differences import is_safe
from penstock.ops.doctor.probes import Difference
from penstock.settings import Settings

__all__ = ["AUDIT", "carry_out", "offered", "write_down"]


def offered(findings: Iterable[Finding], action: str, subject: str) -> Fix | None:
    """Return the fix that a finding offers; a system may have got well since it was examined."""
    fixes = (each.fix for each in findings if each.fix is not None)
    return next((each for each in fixes if (each.action, each.subject) == (action, subject)), None)


def carry_out(fix: Fix, settings: Settings, declared: Declared) -> str:
    """Carry a fix out, write it down, and return what came of it; it is raised if it fails."""
    write = partial(write_down, settings.data, fix)
    recorded(write, lambda: _act(fix, settings, declared), lambda _: "done")
    return "done"


def write_down(data: Path, fix: Fix, outcome: str) -> None:
    """Add a line to the audit log in the data folder."""
    audit.write_down(data, f"doctor.{fix.action}", fix.subject, outcome)


def _act(fix: Fix, settings: Settings, declared: Declared) -> None:
    match fix.action:
        case "apply-topic":
            topic = declared.topic(fix.subject)
            if topic is None:
                raise InternalError(f"topic {fix.subject!r} is not declared")
            _apply(topic, Broker(settings))
        case "abort-transaction":
            _fence(settings, fix.subject)


def _apply(topic: Topic[Any], broker: Broker) -> None:
    """Apply a topic, unless somebody has made or changed it meanwhile so that it would lose events."""
    (change,) = plan([topic], broker)
    difference = Difference(change.topic, change.action, dict(change.settings), change.reason or "")
    if change.action != "keep" and not is_safe(difference):
        raise TopicError(
            f"topic {topic.name!r} is not as it was examined: it is not safe any more to apply it",
            hint="`penstock topics plan` shows the difference",
        )
    apply([topic], broker)


def _fence(settings: Settings, transactional_id: str) -> None:
    """A producer that begins under the same id ends what the one before left open."""
    writer = TransactionalProducer(settings, transactional_id, "1 minute")
    with asking(f"abort the transaction of {transactional_id!r}", writer.listener):
        writer.open()
