"""What limits a flow that is behind: its source, its state, its sink, or the cost of a batch itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.documents import JsonObject

Part = Literal["source", "state", "sink", "overhead"]
PARTS: tuple[Part, ...] = get_args(Part)
SINK, SLOTS = "sink", "taskSlots"  # what a report of Spark's is completed with
_STATE = ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs")


@dataclass(frozen=True)
class Bottleneck:
    """How many records wait, and which part of the last batch took the longest.

    `source` is reading, decoding and the flow's own function; `overhead` is planning and the checkpoint.
    """

    behind: int
    part: Part
    seconds: float

    def __str__(self) -> str:
        return f"{self.behind:,} behind, limited by its {self.part} ({self.seconds:.1f} s)"


def bottleneck(report: JsonObject) -> Bottleneck | None:
    """Return what limits a flow, from Spark's report of a batch; None if nothing waits behind it.

    Where Spark writes results by itself, its sink can't be seen apart from the rest: None as well.
    """
    behind, took = sum(map(waiting, report["sources"])), parts(report)
    if not behind or took is None:
        return None
    longest = max(took, key=took.__getitem__)
    return Bottleneck(behind, longest, took[longest] / 1000)


def parts(report: JsonObject) -> dict[Part, float] | None:
    """Return the milliseconds of each part of a batch; None where Spark writes results by itself."""
    took = report.get("durationMs", {})
    if SINK not in took or "addBatch" not in took:
        return None
    run, sink = took["addBatch"], min(took[SINK], took["addBatch"])
    state = min(_state(report), run - sink)
    return {
        "source": run - sink - state,
        "state": state,
        "sink": sink,
        "overhead": took.get("triggerExecution", run) - run,
    }


def _state(report: JsonObject) -> float:
    """How long state took: the time of all tasks by how many of them run side by side."""
    took = 0.0
    for operator in report.get("stateOperators", ()):
        tasks = min(operator.get("numShufflePartitions", 1), report.get(SLOTS, 1))
        took += sum(operator.get(name, 0) for name in _STATE) / max(1, tasks)
    return took


def waiting(source: JsonObject) -> int:
    """How many records of a source were there and have not been read; sources without offsets have none."""
    end, latest = source.get("endOffset"), source.get("latestOffset")
    if not isinstance(end, Mapping) or not isinstance(latest, Mapping):
        return 0
    return sum(
        max(0, offset - end.get(topic, {}).get(partition, 0))
        for topic, partitions in latest.items()
        if isinstance(partitions, Mapping)  # those of files are a number
        for partition, offset in partitions.items()
    )
