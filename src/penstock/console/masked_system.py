"""What is seen of a system, under masks: reasons, errors and findings may quote what is hidden."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from penstock.archive.status import ArchiveStatus
from penstock.capture.status import CaptureStatus
from penstock.console.masking import HIDDEN, Masks
from penstock.ops.doctor.finding import Finding
from penstock.ops.model import DeadLetterStatus, System
from penstock.pipeline.flow_status import FlowStatus
from penstock.replica.status import ReplicaStatus

Copy = TypeVar("Copy", CaptureStatus, ReplicaStatus, ArchiveStatus)


def masked(system: System, findings: Sequence[Finding], masks: Masks) -> tuple[System, list[Finding]]:
    """Return a system and what was found in it, as they may be shown."""
    if not masks.rules:
        return system, list(findings)
    shown = _system(system, masks)
    pairs = zip(_quoting(system), _quoting(shown), strict=True)
    quotes = sorted({before for before, after in pairs if before != after}, key=len, reverse=True)
    return shown, [_finding(each, masks, quotes) for each in findings]


def _system(system: System, masks: Masks) -> System:
    topics = {each.name for each in system.topics}
    return replace(
        system,
        flows=tuple(map(_flow, system.flows)),
        captures=tuple(map(_copy, system.captures)),
        replicas=tuple(map(_copy, system.replicas)),
        archives=tuple(map(_copy, system.archives)),
        dead_letters=tuple(
            _letters(each) if each.source not in topics or masks.covers(each.source) else each
            for each in system.dead_letters
        ),
    )


def _flow(flow: FlowStatus) -> FlowStatus:
    return replace(flow, troubles=tuple(replace(each, text=HIDDEN) for each in flow.troubles))


def _copy(copy: Copy) -> Copy:
    return replace(copy, error=HIDDEN if copy.error else copy.error)


def _letters(letters: DeadLetterStatus) -> DeadLetterStatus:
    return replace(letters, reason=HIDDEN if letters.reason else "")


def _quoting(system: System) -> Iterator[str]:
    """The texts of a system that may quote events, in their order."""
    for flow in system.flows:
        yield from (each.text for each in flow.troubles)
    yield from (each.error for each in system.captures)
    yield from (each.error for each in system.replicas)
    yield from (each.error for each in system.archives)
    yield from (each.reason for each in system.dead_letters)


def _finding(finding: Finding, masks: Masks, quotes: Sequence[str]) -> Finding:
    own = {name: each for name, each in finding.evidence.items() if _hides(masks, finding.subject, name)}
    hidden = [*map(repr, own.values()), *quotes]
    return replace(
        finding,
        summary=_without(finding.summary, hidden),
        cause=_without(finding.cause, hidden),
        hint=_without(finding.hint, hidden),
        evidence={
            name: HIDDEN if name in own else _without(each, hidden) if isinstance(each, str) else each
            for name, each in finding.evidence.items()
        },
    )


def _hides(masks: Masks, subject: str, name: str) -> bool:
    """Whether a piece of evidence is, or may quote, what is hidden: a key, an id, or an error."""
    match name:
        case "key":
            return masks.hides_key(subject)
        case "example":
            return masks.hides_column(subject, "id")
        case _:
            return name == "error"


def _without(text: str, hidden: Sequence[str]) -> str:
    for each in hidden:
        text = text.replace(each, HIDDEN)
    return text
