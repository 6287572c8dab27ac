"""Crash points: where a flow can be held to be killed, by how it runs and what it writes."""

from penstock.log import Broker
from penstock.pipeline import Flow

RESULTS = "results.written"  # seen from outside: the topic has something new


def points_of(flow: Flow) -> list[str]:
    """Return the points that a batch of a flow passes in its mode, in order.

    Spark's own writer, which flows in real time and those that guarantee at least once have, passes none of
    ours: such a flow is held when results of it appear, and when its checkpoint is written. A replay has no
    checkpoint: it passes those of its sink only.
    """
    if flow.is_native:
        return [RESULTS, "flow.committed"]
    if flow.mode == "replay":
        return [*flow.target.crash_points]
    return ["flow.planned", *flow.target.crash_points, "flow.written", "flow.committed"]


def results_of(flow: Flow, broker: Broker) -> int:
    """How much there is in the topics that a flow writes."""
    there = broker.topics([topic.name for topic in flow.target.topics])
    return sum(end for name in there for _, end in broker.offsets(name).values())
