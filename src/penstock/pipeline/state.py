"""What a changed flow can keep of its state, told before it starts."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from penstock.errors import FlowError
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.job import Job
from penstock.pipeline.logical import Node, logical_plan, optimised_plan
from penstock.process.keyed.about import About

DESCRIPTION = "penstock.json"  # beside the checkpoint
_STATEFUL = (
    "Aggregate",
    "Join",
    "Deduplicate",
    "FlatMapGroups",
    "TransformWithState",
    "Distinct",
    "GlobalLimit",
)

_OPTIMIZERS = re.compile(r"^_extract_|(?<=_common_expr)_\d+")  # what Spark adds to names, and counts on


@dataclass(frozen=True)
class Finding:
    """One thing about a changed flow: what it is about, whether it is kept, and why."""

    subject: str
    kept: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {'kept' if self.kept else 'lost'}, {self.reason}"


def describe_state(version: str, frame: DataFrame, reads: Sequence[str]) -> dict[str, Any]:
    """Say what a flow reads and what state it keeps, to be compared when it is started the next time.

    Of joins and aggregates Spark keeps only what is `used` after them, in columns that it does not name.
    """
    return {
        "version": version,
        "reads": sorted(reads),
        "state": [_operator(node) for node in logical_plan(frame).walk() if _is_stateful(node)],
        "used": [_used(node) for node in optimised_plan(frame).walk() if _is_stateful(node)],
    }


def compare_state(before: dict[str, Any], after: dict[str, Any]) -> Iterator[Finding]:
    """Yield what becomes of each topic's position and each step's state.

    >>> old = {"version": "1", "reads": ["a"], "state": [{"step": "Aggregate", "shape": ["card string"]}]}
    >>> [str(each) for each in compare_state(old, {**old, "state": []})]
    ['position in a: kept, it is read as before', 'state of step 1 (Aggregate): lost, the step is gone']
    """
    for topic in sorted({*before["reads"], *after["reads"]}):
        yield _topic(topic, topic in before["reads"], topic in after["reads"])
    for place in range(max(len(before["state"]), len(after["state"]))):
        old, new = (dict(enumerate(each["state"])).get(place) for each in (before, after))
        yield _step(place + 1, old, new)
    for old, new in zip(before.get("used", ()), after.get("used", ()), strict=False):
        if old != new:
            yield Finding("columns of state", False, f"of what is used, {_difference(old, new)}")


def refuse_changed_state(job: Job, frame: DataFrame, checkpoint: Checkpoint, reads: Sequence[str]) -> None:
    """Refuse a flow that can't go on with its state; write down what it is, for the next time."""
    after = describe_state(job.version, frame, reads)
    written = checkpoint.read(DESCRIPTION)
    if written is not None and checkpoint.id is not None:
        lost = [each for each in compare_state(json.loads(written), after) if not each.kept]
        if lost:
            told = "; ".join(str(each) for each in lost)
            raise FlowError(
                f"flow {job.label!r} has changed and can't go on with its checkpoint: {told}",
                hint="undo the change, or give the flow a new name, which begins anew",
            )
    if written is None or json.loads(written) != after:
        checkpoint.write(DESCRIPTION, json.dumps(after))


def is_stateful(frame: DataFrame) -> bool:
    """Whether a stream keeps state from batch to batch."""
    return any(_is_stateful(node) for node in logical_plan(frame).walk())


def _is_stateful(node: Node) -> bool:
    if node.name == "Join":
        return all(child.streaming for child in node.children)
    return node.streaming and node.name.startswith(_STATEFUL)


def _operator(node: Node) -> dict[str, Any]:
    schema = json.loads(node.java.schema().json())
    return {
        "step": node.name,
        "shape": [f"{field['name']} {_type(field['type'])}" for field in schema["fields"]],
    }


def _used(node: Node) -> list[str]:
    if node.name == "Aggregate":
        columns = node.aggregates
    elif node.name == "Join":
        columns = [column for side in node.children for column in _operator(side)["shape"]]
    else:
        columns = []
    return [_OPTIMIZERS.sub("", column) for column in columns]


def _type(spelled: Any) -> str:
    return spelled if isinstance(spelled, str) else json.dumps(spelled, sort_keys=True)


def _topic(name: str, before: bool, after: bool) -> Finding:
    subject = f"position in {name}"
    if before and after:
        return Finding(subject, True, "it is read as before")
    if before:
        return Finding(subject, False, "the flow does not read it any more")
    return Finding(subject, False, "it is new, and a checkpoint's topics are fixed")


def _step(number: int, old: dict[str, Any] | None, new: dict[str, Any] | None) -> Finding:
    name = (old or new or {})["step"]
    subject = f"state of step {number} ({name})"
    if old == new:
        return Finding(subject, True, "it has the same shape")
    if new is None:
        return Finding(subject, False, "the step is gone")
    if old is None:
        return Finding(subject, False, "the step is new and would start empty in mid-stream")
    if _grown(old, new):
        return Finding(subject, True, "it has become wider, new columns begin with null")
    return Finding(subject, False, _difference(old["shape"], new["shape"]))


def _grown(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether both are keyed state, and the new one holds what the old one has."""
    before, after = (About.read(",".join(each["shape"]).removesuffix(" binary")) for each in (old, new))
    return before is not None and after is not None and after.holds(before)


def _difference(old: list[str], new: list[str]) -> str:
    gone, come = (sorted({*one} - {*other}) for one, other in ((old, new), (new, old)))
    told = [
        f"{word} {', '.join(columns)}"
        for word, columns in (("it had", gone), ("it would have", come))
        if columns
    ]
    return ", ".join(told) or "it has the same in another order"
