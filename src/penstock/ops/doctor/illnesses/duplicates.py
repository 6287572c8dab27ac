"""Duplicates: the same id more than once among the last records of a topic."""

from collections.abc import Iterator

from penstock.ops.doctor.finding import Finding
from penstock.ops.doctor.probes import Probes
from penstock.ops.doctor.topic_sample import TopicSample
from penstock.ops.model import System
from penstock.pipeline.flow_status import FlowStatus

ID = "output.duplicates"


def duplicates(system: System, probes: Probes) -> Iterator[Finding]:
    """Find topics of events in which ids are repeated; in a compacted topic they may be.

    What stands as `id` in the records of strangers, or of a table's changes, need not be one of an event.
    """
    compacted = {each.name for each in system.topics if "compact" in each.config.get("cleanup.policy", "")}
    events = {*probes.events, *(name for flow in system.flows for name in flow.writes)} - compacted
    for name, sample in probes.samples.items():
        if name in events and sample.duplicates():
            yield _finding(sample, next((each for each in system.flows if name in each.writes), None))


def _finding(sample: TopicSample, writer: FlowStatus | None) -> Finding:
    found = sample.duplicates()
    extra, example = sum(found.values()) - len(found), min(found)
    places = [each.place for each in sample.records if each.whole_id == example]
    exact = writer is not None and writer.guarantee == "exactly-once"
    return Finding(
        ID,
        "error" if exact else "warning",
        sample.topic,
        f"{extra} of its last {len(sample.records):,} records are duplicates by their id",
        {
            "duplicates": extra,
            "ids": len(found),
            "sampled": len(sample.records),
            "example": example[0],
            "places": " ".join(places[:4]),
            **({"flow": writer.label, "guarantee": writer.guarantee} if writer else {}),
        },
        _cause(writer),
        "read it with Consumer(deduplicate=True) or dedup.first"
        + ("" if exact or writer is None else '; guarantee="exactly-once" in stream mode writes each once'),
    )


def _cause(writer: FlowStatus | None) -> str:
    if writer is None:
        return "a producer sent them again, as one does that is not idempotent or was started again"
    if writer.guarantee == "exactly-once":
        return "the flow gives several results one id, or somebody else writes the topic, too"
    return (
        f"the flow guarantees {writer.guarantee}: what it had emitted since its last checkpoint was "
        "re-emitted after it was ended"
    )
