"""A rebalance storm: a group that is spread anew again and again, and reads nothing meanwhile."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.lag_cause import storm_of
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.spelling import spelled
from penstock.ops.model import System

ID = "group.rebalancing"
_STILL = 120.0  # seconds since the last one


def rebalancing(system: System, probes: Probes) -> Iterator[Finding]:
    """Find groups that had six rebalances or more in the last minutes, one of them just now."""
    for group in system.groups:
        storm = storm_of(group.group, probes)
        if storm is not None and system.at - storm.last < _STILL:
            yield Finding(
                ID,
                "warning",
                group.group,
                f"it was spread anew {storm.count} times in {spelled(storm.seconds)}",
                {
                    "rebalances": storm.count,
                    "seconds": round(storm.seconds),
                    "members": len(group.members),
                    "state": group.state,
                },
                "members come and go: they crash, or take longer for a batch than max.poll.interval.ms, or "
                "their heartbeats come later than session.timeout.ms",
                "look into the log of its members; give each a member= of its own, take smaller batches, or "
                "raise max.poll.interval.ms",
            )
