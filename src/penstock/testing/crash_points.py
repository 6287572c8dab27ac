"""Crash points: where a flow can be held to be killed, by how it runs and what it writes."""

from penstock.log import Broker, Topic
from penstock.pipeline import Flow

RESULTS = "results.written"  # seen from outside: the topic has something new
_KAFKA = ("opened", "sent", "committed", "written")
_POSTGRES = ("opened", "staged", "before-merge", "merged", "committed")


def points_of(flow: Flow) -> list[str]:
    """Return the points that a batch of a flow passes in its mode, in order.

    Spark's own writer, which flows in real time and those that guarantee at least once have, passes none of
    ours: such a flow is held when results of it appear, and when its checkpoint is written. A replay has no
    checkpoint: it passes those of its sink only.
    """
    if is_native(flow):
        return [RESULTS, "flow.committed"]
    if flow.mode == "replay":
        return _sink_points(flow)
    return ["flow.planned", *_sink_points(flow), "flow.written", "flow.committed"]


def is_native(flow: Flow) -> bool:
    """Whether Spark's own writer writes its results."""
    return isinstance(flow.writes, Topic) and (
        flow.mode == "realtime" or flow.effective_guarantee == "at-least-once"
    )


def results_of(flow: Flow, broker: Broker) -> int:
    """How much there is in the topic that a flow writes."""
    assert isinstance(flow.writes, Topic)  # noqa: S101
    if flow.writes.name not in broker.topics():
        return 0
    return sum(end for _, end in broker.offsets(flow.writes.name).values())


def _sink_points(flow: Flow) -> list[str]:
    if isinstance(flow.writes, Topic):
        return [f"sink.kafka.{name}" for name in _KAFKA]
    table = [f"sink.postgres.{name}" for name in _POSTGRES]
    if not flow.side_outputs:
        return table
    return [*(f"sink.kafka.{name}" for name in _KAFKA), "sink.side-outputs.written", *table]
