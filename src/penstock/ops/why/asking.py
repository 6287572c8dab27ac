"""Asking why: a result is looked up, the flow that made it is found, and the events behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log.ledger import Offsets
from penstock.ops.why.answer import Answer, Made
from penstock.ops.why.lookup import Looked, in_target, in_topic
from penstock.ops.why.reading import MALFORMED, Reading
from penstock.ops.why.search import Found, Search, first
from penstock.ops.why.wanted import Wanted
from penstock.pipeline import Pipeline
from penstock.pipeline.conservation import windows_of
from penstock.pipeline.flow import Flow
from penstock.process import read
from penstock.process.columns.names import START
from penstock.process.spark.java_errors import java_errors
from penstock.process.windows.kept import KIND
from penstock.settings import Settings

RUNS = 60


@dataclass(frozen=True)
class Question:
    """Which result of a target is meant: by the values of its key, its place in the topic, or a condition.

    Of several, it is the last one. `runs` is how often the flow's function may be run to leave events out.
    """

    target: str
    key: tuple[str, ...] = ()
    record: tuple[int, int] | None = None
    where: str | None = None
    runs: int = RUNS


def why(question: Question, pipelines: Sequence[Pipeline], settings: Settings, spark: SparkSession) -> Answer:
    """Return the events behind a result, proved by recomputing it from just these."""
    flows = _flows(question.target, pipelines, settings)
    with java_errors(f"explain a result of {question.target!r}", settings):
        asked = _of_topic if _is_topic(question.target, flows) else _of_table
        return asked(question, flows, settings, spark)


def explained(
    flow: Flow,
    label: str,
    looked: Looked,
    question: Question,
    sources: Mapping[str, DataFrame],
    tables: Mapping[str, DataFrame],
    ends: Sequence[Offsets] = (),
) -> Answer:
    """Return the events behind a result that is known, among what a flow reads; its batches had `ends`."""
    wanted = _wanted(flow, question.target, looked, flow.function(**sources, **tables))
    search = Search(flow.function, sources, flow.reads, tables, wanted, question.runs, ends)
    found = search.found()
    if found is None:
        raise FlowError(
            f"no event of {', '.join(topic.name for topic in flow.reads.values())} may be behind the result",
            hint=_too_many(search.skipped) or "the log may not have them any more",
        )
    try:
        made = looked.made or Made(label, flow.version)
        return _answer(question.target, looked, wanted, made, found, search.runs)
    finally:
        found.inputs.close()


def _answer(target: str, looked: Looked, wanted: Wanted, made: Made, found: Found, runs: int) -> Answer:
    near = found.nearest if found.nearest is not None and found.nearest.is_near else None
    return Answer(
        target=target,
        result=looked.values,
        place=looked.place,
        made=made,
        events=found.inputs.events(first(found.numbers) if near is None else found.numbers),
        proved=near is not None and near.is_same,
        minimal=found.minimal,
        but_for=() if near is None else near.differs,
        compared=() if near is None else (*wanted.keys, *near.agrees),
        looked_at=found.words,
        candidates=len(found.inputs.candidates),
        runs=runs,
        instead={} if near is None else near.instead,
    )


def _of_topic(
    question: Question, flows: Mapping[Identity, Flow], settings: Settings, spark: SparkSession
) -> Answer:
    topics = [topic for flow in flows.values() for topic in flow.target.topics]
    topic = next(each for each in topics if each.name == question.target)
    rows = read(spark, topic, settings, counted=MALFORMED)
    looked = in_topic(rows, topic, question.key, question.record, question.where)
    identity = _maker_of(looked, flows)
    reading = Reading(identity, flows[identity], settings, spark)
    sources, tables = reading.sources({}), reading.tables()
    return explained(reading.flow, identity.label, looked, question, sources, tables, reading.ends())


def _of_table(
    question: Question, flows: Mapping[Identity, Flow], settings: Settings, spark: SparkSession
) -> Answer:
    if question.record is not None:
        raise FlowError(f"{question.target!r} is no topic: its rows have no offsets", hint="name the key")
    identity, flow = next(iter(flows.items()))
    reading = Reading(identity, flow, settings, spark)
    sources, tables = reading.sources(reading.position()), reading.tables()
    results = flow.function(**sources, **tables)
    looked = in_target(settings, identity.label, flow, results, question.key, question.where)
    return explained(flow, identity.label, looked, question, sources, tables)


def _wanted(flow: Flow, target: str, looked: Looked, results: DataFrame) -> Wanted:
    """What is compared: `kind`, and an id that is made of it, say when windows were emitted, not of what."""
    topic = next((each for each in flow.target.topics if each.name == target), None)
    free = {KIND, "id"} if windows_of(results) is not None else set()
    own = flow.target.upsert_key if topic is None else (topic.key,)
    keys = [name for name in (*own, "id", START) if name in results.columns and name in looked.values]
    return Wanted(
        looked.values,
        tuple(dict.fromkeys(name for name in keys if name not in free and name is not None)),
        frozenset(free),
        None if looked.made is None else looked.made.source,
        looked.written,
        side_output=target if target in [each.name for each in flow.side_outputs] else None,
        deleted=looked.deleted,
    )


def _flows(target: str, pipelines: Sequence[Pipeline], settings: Settings) -> dict[Identity, Flow]:
    """The flows that write a target."""
    every = {
        Identity.of(settings.namespace, pipeline.name, name): flow
        for pipeline in pipelines
        for name, flow in pipeline.flows.items()
    }
    found = {identity: flow for identity, flow in every.items() if target in names_of(flow)}
    if not found:
        known = sorted({name for flow in every.values() for name in names_of(flow)})
        raise FlowError(
            f"no flow of the modules writes {target!r}", hint=f"they write {', '.join(known) or 'nothing'}"
        )
    return found


def names_of(flow: Flow) -> list[str]:
    """Return what a flow's target and side outputs go by."""
    own = (getattr(flow.writes, name, None) for name in ("name", "prefix", "path"))
    named = [str(each) for each in own if each is not None][:1]
    return [*named, *(topic.name for topic in flow.side_outputs)]


def _is_topic(target: str, flows: Mapping[Identity, Flow]) -> bool:
    return any(topic.name == target for flow in flows.values() for topic in flow.target.topics)


def _maker_of(looked: Looked, flows: Mapping[Identity, Flow]) -> Identity:
    """The flow that a result names."""
    if looked.made is None:
        raise FlowError(
            f"the event at {looked.place} was not made by a flow: nothing is behind it",
            hint="ask about what flows have made of it",
        )
    for identity in flows:
        if identity.label == looked.made.flow:
            return identity
    raise FlowError(
        f"the result at {looked.place} was made by {looked.made.flow!r}, which the modules don't declare",
        hint="name the module of that flow with -m, and use the namespace that it runs with; "
        f"here are {', '.join(identity.label for identity in flows)}",
    )


def _too_many(skipped: Sequence[str]) -> str | None:
    return f"there are too many events to try: {'; '.join(skipped)}" if skipped else None
