"""What a changed flow can keep of its state, found before it starts."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from penstock.documents import Json, JsonObject
from penstock.errors import FlowError
from penstock.identity import is_clock
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.job import Job
from penstock.process.columns.lineage import Lineage
from penstock.process.columns.side_output import SIDE_OUTPUT, STORED
from penstock.process.spark.logical import Column, Node, logical_plan, optimised_plan, topics_of
from penstock.process.state.comparison import difficulties
from penstock.process.state.description import StateDescription
from penstock.process.state.pinned import Pins

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
_SHADOW = "build its state anew in the shadow of the old one: `penstock shadow {0}`, `penstock swap {0}`"
_ANEW = "begin anew: give the flow a new name, or run it once with `penstock run … --begin-anew`"
_RENAMED = "undo the change; say of a field that was renamed by an upcaster of its topic"
_UNUSED = "use no other fields of the events behind the step than before"
_REFUSED = re.compile(r"\[(?:STATE_STORE_\w*SCHEMA\w*|STREAMING_STATEFUL_OPERATOR_NOT_MATCH\w*)[^\n]*")
_OPTIMIZERS = re.compile(r"^_extract_|(?<=_common_expr)_\d+")  # what Spark adds to names, and counts on


@dataclass(frozen=True)
class Finding:
    """One thing about a changed flow: what it is about, whether it is kept, why, and what helps."""

    subject: str
    kept: bool
    reason: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {'kept' if self.kept else 'lost'}, {self.reason}"


def describe_state(
    version: str, frame: DataFrame, reads: Sequence[str], pins: Pins | None = None
) -> JsonObject:
    """Say what a flow reads and what state it keeps, to be compared when it is started the next time.

    Columns stand under the oldest names that their topics' upcasters know: these stay. Of joins and
    aggregates Spark keeps only what is `used` after them, in columns that it does not name.
    """
    return {
        "version": version,
        "reads": sorted(reads),
        "sources": _sources(logical_plan(frame)),
        "state": [_operator(node) for node in logical_plan(frame).walk() if _is_stateful(node)],
        "used": [_used(node) for node in optimised_plan(frame).walk() if _is_stateful(node)],
        "pins": {} if pins is None else pins.taken,
    }


def compare_state(before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """Yield what becomes of each topic's position and each step's state.

    >>> old = {"version": "1", "reads": ["a"], "state": [{"step": "Aggregate", "shape": ["card string"]}]}
    >>> [str(each) for each in compare_state(old, {**old, "state": []})]
    ['position in a: kept, it is read as before', 'state of step 1 (Aggregate): lost, the step is gone']
    """
    for topic in sorted({*before["reads"], *after["reads"]}):
        yield _topic(topic, topic in before["reads"], topic in after["reads"])
    if _positions_are_swapped(before, after):
        reason = "its topics are read in another order, by which Spark knows their positions"
        yield Finding("positions", False, reason)
    for place in range(max(len(before["state"]), len(after["state"]))):
        old, new = (dict(enumerate(each["state"])).get(place) for each in (before, after))
        yield _step(place + 1, old, new)
    for old, new in zip(before.get("used", ()), after.get("used", ()), strict=False):
        if old != new:
            yield Finding("columns of state", False, f"of what is used, {_difference(old, new)}", _UNUSED)


def _sources(plan: Node) -> list[str]:
    """The topics that a stream reads, in the order in which Spark counts its sources, if it shows them."""
    return list(dict.fromkeys(topics_of(plan)))


def _positions_are_swapped(before: JsonObject, after: JsonObject) -> bool:
    """Whether Spark would take the position of one topic for that of another.

    Native windows that follow an idle clock were once planned the other way round, by a release that did not
    write the order down.
    """
    if "sources" in before:
        return set(before["sources"]) == set(after["sources"]) and before["sources"] != after["sources"]
    windows = any(each["step"] == "Aggregate" for each in after["state"])
    return windows and any(is_clock(topic) for topic in before["reads"])


def pins_of(checkpoint: Checkpoint) -> Pins:
    """Return the fields that Spark's state of a flow has had since it began."""
    written = checkpoint.read(DESCRIPTION)
    if written is None or checkpoint.id is None:
        return Pins()
    return Pins(json.loads(written).get("pins", {}), began=True)


def refuse_changed_state(
    job: Job, frame: DataFrame, checkpoint: Checkpoint, reads: Sequence[str], pins: Pins | None = None
) -> None:
    """Refuse a flow that can't go on with its state; write down what it is, for the next time."""
    after = describe_state(job.flow.version, frame, reads, pins)
    written = checkpoint.read(DESCRIPTION)
    if written is not None and checkpoint.id is not None:
        lost = [each for each in compare_state(json.loads(written), after) if not each.kept]
        if lost:
            message = "; ".join(str(each) for each in lost)
            hints = dict.fromkeys(each.hint or "undo the change" for each in lost)
            words = f"{job.identity.pipeline} {job.identity.flow}"
            raise FlowError(
                f"flow {job.label!r} has changed and can't go on with its checkpoint: {message}",
                hint=f"{', '.join(hints)}, or {_instead(words, shadow=job.rebuilds)}",
            )
    if written is None or json.loads(written) != after:
        checkpoint.write(DESCRIPTION, json.dumps(after))


def _instead(words: str = "PIPELINE FLOW", *, shadow: bool = False) -> str:
    """What helps a flow whose state does not fit any more; `words` are what commands about it take."""
    if shadow:
        return f"give the shadow up and begin a new one: `penstock shadow {words} --discard`"
    return f"{_SHADOW.format(words)}, or {_ANEW}"


def is_stateful(frame: DataFrame) -> bool:
    """Whether a stream keeps state from batch to batch."""
    return any(_is_stateful(node) for node in logical_plan(frame).walk())


def unfit_state(error: str) -> FlowError | None:
    """Return what is to be said where Spark refuses its state: trying again would not help."""
    found = _REFUSED.search(error)
    if found is None:
        return None
    return FlowError(
        f"Spark can't go on with the flow's state: {found[0]}",
        hint=f"{_RENAMED}, or {_instead()}",
    )


def _is_stateful(node: Node) -> bool:
    if node.name == "Join":
        return all(child.streaming for child in node.children)
    return node.streaming and node.name.startswith(_STATEFUL)


def _operator(node: Node) -> JsonObject:
    step: JsonObject = {"step": node.name, "shape": [_spelled(each) for each in node.columns]}
    frames = (StateDescription.of_column(each["metadata"]) for each in node.columns)
    if found := next((each for each in frames if each is not None), None):
        step["frame"] = found.to_json()
    if node.name.startswith("Deduplicate"):
        step["keys"] = [_spelled(each) for each in node.keys]
    return step


def _used(node: Node) -> list[str]:
    if node.name == "Aggregate":
        return [f"{function}({', '.join(map(_name, columns))})" for function, columns in node.aggregates]
    if node.name == "Join":
        return [_spelled(column) for side in node.children for column in side.columns]
    return []


def _spelled(column: Column) -> str:
    return f"{_name(column)} {_type(column['type'])}"


def _name(column: Column) -> str:
    name = _OPTIMIZERS.sub("", column["name"])
    if name == SIDE_OUTPUT:
        return STORED
    return Lineage.read(name, column["metadata"]).original(name)


def _type(type: Json) -> str:
    return type if isinstance(type, str) else json.dumps(_plain(type), sort_keys=True)


def _plain(type: Json) -> Json:
    """A type without what goes with its fields, which are called by their oldest names."""
    match type:
        case {"type": "struct", "fields": fields}:
            return {"type": "struct", "fields": [_plain_field(each) for each in fields]}
        case {"elementType": inner}:
            return {**type, "elementType": _plain(inner)}
        case {"valueType": inner}:
            return {**type, "valueType": _plain(inner)}
    return type


def _plain_field(field: Column) -> JsonObject:
    return {**field, "name": _name(field), "type": _plain(field["type"]), "metadata": {}}


def _topic(name: str, before: bool, after: bool) -> Finding:
    subject = f"position in {name}"
    if before and after:
        return Finding(subject, True, "it is read as before")
    if before:
        return Finding(subject, False, "the flow does not read it any more")
    if is_clock(name):
        return Finding(subject, False, "the checkpoint is of a version whose watermarks were Spark's own")
    return Finding(subject, False, "it is new, and a checkpoint's topics are fixed")


def _step(number: int, old: JsonObject | None, new: JsonObject | None) -> Finding:
    name = (old or new or {})["step"]
    subject = f"state of step {number} ({name})"
    if new is None:
        return Finding(subject, False, "the step is gone")
    if old is None:
        return Finding(subject, False, "the step is new and would start empty in mid-stream")
    if old["step"] != new["step"]:
        return Finding(subject, False, f"the step would be {new['step']}")
    return _same_step(subject, old, new)


def _same_step(subject: str, old: JsonObject, new: JsonObject) -> Finding:
    if "frame" in old and "frame" in new:
        before, after = (StateDescription.read(each["frame"]) for each in (old, new))
        reasons = list(difficulties(before, after))
        if reasons:
            return Finding(subject, False, ", ".join(reasons), _RENAMED)
        same = before == after
        return Finding(subject, True, "it has the same shape" if same else "it is brought to its new shape")
    part = "keys" if "keys" in old and "keys" in new else "shape"
    if old["step"] == "Join" or old[part] == new[part]:  # of a join, what is used is compared
        return Finding(subject, True, "it has the same shape")
    return Finding(subject, False, _difference(old[part], new[part]), _RENAMED)


def _difference(old: list[str], new: list[str]) -> str:
    gone, come = (sorted({*one} - {*other}) for one, other in ((old, new), (new, old)))
    differences = [
        f"{word} {', '.join(columns)}"
        for word, columns in (("it had", gone), ("it would have", come))
        if columns
    ]
    return ", ".join(differences) or "it has the same in another order"
