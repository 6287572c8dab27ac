"""A finding: what is wrong with what, the numbers that show it, the likely cause, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")  # the worst first
Evidence = Mapping[str, float | int | str]


@dataclass(frozen=True)
class Fix:
    """A safe change that ends an illness; `command` is how a person would make it."""

    action: Literal["apply-topic", "abort-transaction"]
    subject: str
    command: str


@dataclass(frozen=True)
class Finding:
    """An illness of a subject (a flow, group, topic, service or folder); `id` is stable across releases."""

    id: str
    severity: Severity
    subject: str
    summary: str
    evidence: Evidence = field(default_factory=dict)
    cause: str = ""
    hint: str = ""
    fix: Fix | None = None

    @property
    def is_trouble(self) -> bool:
        """Whether somebody should act on it."""
        return self.severity != "info"


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Return findings with the most severe first, and those of one kind together."""
    return sorted(findings, key=lambda each: (SEVERITIES.index(each.severity), each.id, each.subject))
