"""All checks of the doctor, and the examination of a system by them."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from penstock.errors import SettingsError
from penstock.ops.doctor.finding import Finding, worst_first
from penstock.ops.doctor.illnesses import (
    contradictions,
    copies,
    dead_letters,
    differences,
    duplicates,
    flows,
    full_disk,
    growing_lag,
    growing_state,
    hot_keys,
    idle_members,
    late_events,
    missing_events,
    poison,
    processing_time,
    rebalancing,
    retention,
    services,
    skew,
    slots,
    slow_checkpoint,
    slow_targets,
    stalled_flows,
    stopped_lag,
    stuck_transactions,
    stuck_watermark,
)
from penstock.ops.doctor.probes import Probes
from penstock.ops.model import System


@dataclass(frozen=True)
class Check:
    """A check by the id of what it finds; `sampled` says that it looks at the last records of topics."""

    id: str
    find: Callable[[System, Probes], Iterable[Finding]]
    sampled: bool = False


CHECKS = (
    Check(services.DOWN, services.services_down),
    Check(flows.FAILED, flows.failed_flows),
    Check(flows.SILENT, flows.silent_flows),
    Check(stalled_flows.ID, stalled_flows.stalled_flows),
    Check(growing_lag.ID, growing_lag.growing_lag),
    Check(stopped_lag.ID, stopped_lag.stopped_lag),
    Check(retention.ID, retention.retention),
    Check(idle_members.ID, idle_members.idle_members),
    Check(rebalancing.ID, rebalancing.rebalancing),
    Check(duplicates.ID, duplicates.duplicates, sampled=True),
    Check(late_events.ID, late_events.late_events, sampled=True),
    Check(processing_time.ID, processing_time.processing_time),
    Check(stuck_watermark.ID, stuck_watermark.stuck_watermark, sampled=True),
    Check(slow_checkpoint.ID, slow_checkpoint.slow_checkpoint),
    Check(growing_state.ID, growing_state.growing_state),
    Check(hot_keys.ID, hot_keys.hot_keys, sampled=True),
    Check(skew.ID, skew.skew, sampled=True),
    Check(missing_events.ID, missing_events.missing_events, sampled=True),
    Check(poison.ID, poison.poison),
    Check(stuck_transactions.ID, stuck_transactions.stuck_transactions),
    Check(slots.ID, slots.slots),
    Check(dead_letters.ID, dead_letters.dead_letters),
    Check(slow_targets.ID, slow_targets.slow_targets),
    Check(copies.ID, copies.copies),
    Check(full_disk.ID, full_disk.full_disk),
    Check(contradictions.ID, contradictions.contradictions),
    Check(differences.ID, differences.differences),
    Check(services.UNANSWERED, services.unanswered),
)


def check_ids() -> tuple[str, ...]:
    """Return the ids of all findings that there are."""
    return tuple(each.id for each in CHECKS)


def chosen(only: Collection[str] = ()) -> tuple[Check, ...]:
    """Return the checks of some ids, all unless given; an id that there is not is refused.

    What nobody answered is always among them: a look that saw nothing must not pass for a healthy one.
    """
    unknown = set(only) - set(check_ids())
    if unknown:
        raise SettingsError(
            f"there is no finding {min(unknown)!r}", hint=f"there are {', '.join(check_ids())}"
        )
    return tuple(each for each in CHECKS if not only or each.id in (*only, services.UNANSWERED))


def diagnose(system: System, probes: Probes, only: Collection[str] = ()) -> list[Finding]:
    """Return what is wrong, the worst first; `only` names the ids to look for, all unless given."""
    return worst_first([found for check in chosen(only) for found in check.find(system, probes)])
