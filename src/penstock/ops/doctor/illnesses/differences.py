"""Topics that are not as declared."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding, Fix
from penstock.ops.doctor.probes import Difference, Probes
from penstock.ops.model import System

ID = "settings.differ"
_ACTIONS = {
    "create": "it is declared, and is not there",
    "grow": "it has fewer partitions than declared",
    "configure": "its settings are not as declared",
    "refuse": "it can't be made as declared",
}
_UPWARDS = {  # what is higher keeps, or takes in, at least as much
    "retention.ms",
    "retention.bytes",
    "delete.retention.ms",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
}
_UNBOUNDED = {  # by what
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


def differences(system: System, probes: Probes) -> Iterator[Finding]:  # noqa: ARG001
    """Find declared topics that the broker has otherwise."""
    for each in probes.differences:
        if each.action in _ACTIONS:
            yield Finding(
                ID,
                "error" if each.action == "refuse" else "warning",
                each.topic,
                _ACTIONS[each.action] + (f": {each.reason}" if each.reason else ""),
                {name: f"{before or 'default'} → {after}" for name, (before, after) in each.settings.items()},
                "the declaration was changed and not applied, or somebody changed the topic by hand",
                "`penstock topics plan` shows the difference, `penstock topics apply` closes it",
                Fix("apply-topic", each.topic, f"penstock topics apply ({each.topic} only)")
                if is_safe(each)
                else None,
            )


def is_safe(difference: Difference) -> bool:
    """Say whether applying it deletes nothing and moves no key."""
    if difference.action == "create":
        return True
    changes = difference.settings.items()
    return difference.action == "configure" and all(_keeps(name, *each) for name, each in changes)


def _keeps(name: str, before: str | None, after: str) -> bool:
    """Whether a setting keeps at least as much as before; of all that are not known to, none does."""
    bound = _UNBOUNDED.get(name)
    if after == bound:
        return True
    return name in _UPWARDS and before not in (None, bound) and int(after) >= int(before or 0)
