"""Why somebody is behind: collections, rebalances, restarts, a slow part, or too few partitions."""

from dataclasses import dataclass, field

from penstock.ops.doctor.finding import Evidence
from penstock.ops.doctor.probes import Probes, Rebalances
from penstock.ops.model import GroupStatus, System
from penstock.pipeline.flow_status import FlowStatus

COLLECTING = 0.2  # the share of time in garbage collections that is too much
_RECENT = 600.0  # seconds
_PARTS = {
    "sink": (
        "its target takes the longest",
        "see how the target is (`penstock doctor --only target.behind`); give it more lanes= or a larger "
        "checkpoint_interval=",
    ),
    "state": (
        "its state takes the longest",
        "bound it (within=, at_most=, a watermark or a time to live), and see state.growing and keys.hot",
    ),
    "overhead": (
        "planning and checkpoints take the longest",
        "give it a longer checkpoint_interval=, and see checkpoint.slow",
    ),
}


@dataclass(frozen=True)
class LagCause:
    """The likeliest cause, with its numbers and its remedy."""

    cause: str
    hint: str
    evidence: Evidence = field(default_factory=dict)


def flow_cause(flow: FlowStatus, system: System, probes: Probes) -> LagCause:
    """Return why a flow is behind, by what took its time."""
    shares = shares_of(flow)
    found = _collections(flow, probes) or _restarts(flow, system)
    if found is not None:
        return found
    slowest = max(shares, key=shares.__getitem__)
    evidence = {f"share_{part}": round(share, 2) for part, share in shares.items()}
    if slowest in _PARTS and shares[slowest] > 0:
        return LagCause(*_PARTS[slowest], evidence)
    return _logic(flow, system, probes, evidence)


def shares_of(flow: FlowStatus) -> dict[str, float]:
    """Return the share of each part in the time of the last batches; `source` is reading and computing."""
    samples = flow.samples[-12:]
    whole = sum(each.seconds for each in samples) or 1.0
    found = {
        "sink": sum(each.sink_ms for each in samples) / 1000 / whole,
        "state": sum(each.state_ms for each in samples) / 1000 / whole,
        "overhead": sum(each.overhead_ms for each in samples) / 1000 / whole,
    }
    return {"source": max(0.0, 1 - sum(found.values())), **found}


def group_cause(group: GroupStatus, probes: Probes) -> LagCause:
    """Return why a group is behind, by its rebalances, its members and its partitions."""
    storm = storm_of(group.group, probes)
    if storm is not None:
        return LagCause(
            "it is spread anew again and again: nobody reads meanwhile",
            "see group.rebalancing",
            {"rebalances": storm.count, "rebalance_seconds": round(storm.seconds)},
        )
    partitions, members = len(group.lags), len(group.members)
    if members < partitions:
        return LagCause(
            "its members don't get through what comes, and there are partitions for more of them",
            f"start more members, up to {partitions}, or make the work of an event faster",
        )
    return LagCause(
        "its members don't get through what comes, and each partition has one already",
        "make the work of an event faster; if it can't be, give the topic more partitions",
    )


def storm_of(group: str, probes: Probes) -> Rebalances | None:
    """Return the rebalances of a group if they are too many."""
    return next((each for each in probes.rebalances if each.group == group and each.count >= 6), None)


def _collections(flow: FlowStatus, probes: Probes) -> LagCause | None:
    found = next((each for each in probes.collections if each.process == flow.process), None)
    if found is None or found.share < COLLECTING:
        return None
    return LagCause(
        "its Java process spends its time on garbage collection",
        "give it more memory (spark.driver.memory, spark.executor.memory), or smaller batches "
        "(maxOffsetsPerTrigger)",
        {"collection_share": round(found.share, 2), "collection_seconds": round(found.seconds)},
    )


def _restarts(flow: FlowStatus, system: System) -> LagCause | None:
    recent = [each for each in flow.troubles if system.at - each.at < _RECENT]
    if len(recent) < 2:
        return None
    return LagCause(
        f"it is started again and again: {recent[-1].text}",
        "see records.poison and target.behind",
        {"restarts": flow.restarts, "troubles_in_10_minutes": len(recent)},
    )


def _logic(flow: FlowStatus, system: System, probes: Probes, evidence: Evidence) -> LagCause:
    """Reading and computing are one stage of Spark's, and can't be known apart by their time."""
    partitions = sum(len(each.partitions) for each in system.topics if each.name in flow.reads)
    here = flow.process.partition("/")[0] == probes.host
    known = {**evidence, "partitions": partitions, **({"cores": probes.cores} if here else {})}
    if here and 0 < partitions < probes.cores:
        return LagCause(
            "reading and its function take the longest, and its topics have fewer partitions than this "
            "machine has cores",
            f"give the topics {probes.cores} partitions or more; or make the function faster",
            known,
        )
    return LagCause(
        "reading and its function take the longest (Spark does both in one stage: they are not known apart)",
        "make the function faster (Spark's own functions instead of Python's for each row), or give Spark "
        "more cores",
        known,
    )
