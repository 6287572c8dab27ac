"""The plan of a flow: its topics as typed columns, its function, and the results as they are written."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from penstock.errors import FlowError, UnknownSchemaError
from penstock.identity import Identity
from penstock.log import Broker, Table, Topic
from penstock.log.archive.tiers import Tiers
from penstock.log.ledger import Offsets
from penstock.log.ranges import Ranges
from penstock.log.topic import DEAD_LETTERS
from penstock.pipeline.flow import Flow
from penstock.pipeline.latency import ages
from penstock.pipeline.one_to_one import gives_one_result
from penstock.pipeline.seed import Seed
from penstock.process.lookup import current
from penstock.process.time.watermark import as_source
from penstock.process.wire.events import typed, undecodable
from penstock.process.wire.known_schemas import KnownSchemas, known_schemas
from penstock.process.wire.messages import MADE_BY, made_by
from penstock.process.wire.parsing import schema_ids
from penstock.process.wire.source import kafka_rows
from penstock.registry import Registry
from penstock.schemas import AvroCodec, NumberedSchema
from penstock.schemas.formats import CODECS
from penstock.settings import Settings
from penstock.targets import Results

MALFORMED = "malformed in "  # and the name of an argument: under which its malformed records are counted
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_AT_MOST = {"maxOffsetsPerTrigger": "1000000"}  # of a topic in a batch, however much waits
_POSITION = ("topic", "partition", "offset")
_NOTHING = {"maxOffsetsPerTrigger": "0"}
_LEARNED_AT_ONCE = 2_000  # numbers of schemas, which anybody may write
_AS_FAR_AS_THERE = {"failOnDataLoss": "false"}


@dataclass(frozen=True)
class Span:
    """The part of the log that is read: between two places, or only what tables hold, or only ticks."""

    start: Offsets | None = None
    end: Offsets | None = None
    tables_only: bool = False
    ticks_only: bool = False
    in_batches: bool = False  # although the flow is one of real time
    as_table: bool = False  # not as a stream, whatever the flow's mode
    in_kafka: bool = False  # without archives: a plan that is only looked at needs none
    seed: Seed | None = None  # the state that a projection's stream begins with


WHOLE = Span()


@dataclass
class Planner:
    """Makes DataFrames of flows; it knows the schemas that can be read so far, and learns new ones.

    With `counting`, Spark counts the malformed records that they leave out.
    """

    spark: SparkSession
    settings: Settings
    registry: Registry | None = None
    counting: bool = False
    _known: dict[str, KnownSchemas] = field(default_factory=dict)
    _one_to_one: dict[str, bool] = field(default_factory=dict)

    def results(self, flow: Flow, span: Span = WHOLE) -> DataFrame:
        """Return what the flow's function makes of its topics, as a stream or, in replay, as a table."""
        sources = {
            name: as_source(topic.name, self._typed(flow, name, topic, span))
            for name, topic in flow.reads.items()
        }
        sources |= {name: self._looked_up(flow, name, table, span) for name, table in flow.looks_up.items()}
        try:
            made = self._made(flow, sources, span.seed)
        except AnalysisException as error:
            raise FlowError(f"flow {flow.name!r} can't be planned: {error.getMessage()}") from error
        if not isinstance(made, DataFrame):
            raise FlowError(f"flow {flow.name!r} returned a {type(made).__name__}, expected a DataFrame")
        return made

    def _made(self, flow: Flow, sources: Mapping[str, DataFrame], seed: Seed | None) -> DataFrame:
        if seed is None or flow.projection is None:
            return flow.function(**sources)
        (records,) = sources.values()
        return flow.projection.continued(records, seed.states(self.spark))

    def records(self, flow: Flow, span: Span, malformed: Observation) -> DataFrame:
        """Return the records of a flow's only topic, as it reads them; `malformed` counts those left out."""
        (topic,) = flow.reads.values()
        return typed(self._rows(flow, topic, span), topic, self.known(topic), counted=malformed)

    def rows(self, flow: Flow, label: str, span: Span = WHOLE) -> DataFrame:
        """Return the flow's results as its target takes them in."""
        return self.as_written(flow, label, self.results(flow, span))

    def as_written(self, flow: Flow, label: str, results: DataFrame) -> DataFrame:
        """Return results as the flow's target takes them in."""
        _refuse_missing(flow, results)
        one, maker = self.gives_one_result(flow), Identity(label).maker(flow.version)
        tables = any(isinstance(topic, Table) for topic in flow.reads.values())
        return flow.target.rows(Results(results, label, maker, one, self.schemas, tables, flow.headers))

    def schemas(self, topics: Iterable[Topic[Any]]) -> Mapping[str, NumberedSchema]:
        """Return the schemas of topics that need one, with the numbers that the registry has for them."""
        if self.registry is None:
            return {}
        return {
            topic.name: CODECS[topic.format].numbered(
                topic.event, topic.subject, self.registry, topic.upcasts
            )
            for topic in topics
            if topic.is_registered
        }

    def gives_one_result(self, flow: Flow) -> bool:
        """Whether an event has at most one result; judged by one plan, so that all modes give it one id."""
        if flow.name not in self._one_to_one:
            self._one_to_one[flow.name] = gives_one_result(
                self.results(flow, Span(as_table=True, in_kafka=True))
            )
        return self._one_to_one[flow.name]

    def malformed(
        self,
        label: str,
        topics: Iterable[Topic[Any]],
        ranges: Mapping[str, Ranges],
        options: Mapping[str, str],
    ) -> DataFrame:
        """Return what can't be decoded in offset ranges of topics, as rows for their dead letters."""
        named = {topic.name: topic for topic in topics}
        ids = Broker(self.settings).topic_ids(named)
        found = []
        for name, topic in named.items():
            headers = F.concat("headers", F.array(made_by(label, F.lit(ids[name]))))
            found.append(self._malformed(topic, ranges[name], options).withColumn("headers", headers))
        return reduce(DataFrame.unionByName, found)

    def _malformed(self, topic: Topic[Any], ranges: Ranges, options: Mapping[str, str]) -> DataFrame:
        first = {part: (low, low) for part, (low, _) in Tiers(self.settings).offsets(topic.name).items()}
        wanted = {**first, **ranges}
        start, end = ({topic.name: {p: each[i] for p, each in wanted.items()}} for i in (0, 1))
        rows = kafka_rows(
            self.spark, self.settings, [topic.name], streaming=False, start=start, end=end, options=options
        )
        return undecodable(rows, topic, self.known(topic))

    def letters(self, topics: Mapping[str, str], label: str) -> DataFrame:
        """Return the places of records that are in the dead letters of topics, given with their ids."""
        names = [name + DEAD_LETTERS for name in sorted(topics)]
        rows = kafka_rows(self.spark, self.settings, names, streaming=False)
        part = {name: _header(f"penstock.dead.{name}") for name in _POSITION}
        made = [label, *(f"{label} {id}" for id in topics.values())]  # earlier releases wrote no id
        return rows.where(_header(MADE_BY).isin(made)).select(
            part["topic"].alias("source"),
            part["partition"].cast("int").alias("partition"),
            part["offset"].cast("long").alias("offset"),
        )

    def decoder(self, topic: Topic[Any]) -> str:
        """Return what decides which of a topic's records can be decoded, as a short text."""
        known, steps = self.known(topic), _ADDRESS.sub("", repr(topic.upcasts))
        ids = (sorted(known.schemas), sorted(known.unknown), *([sorted(known.keys)] if known.keys else []))
        parts = (topic.format, topic.unknown, AvroCodec.schema_text(topic.event), steps, ids)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def known(self, topic: Topic[Any]) -> KnownSchemas:
        """The schemas of a topic that can be read."""
        if topic.name not in self._known:
            self._known[topic.name] = known_schemas(topic, self.registry)
        return self._known[topic.name]

    def learn(self, topic: Topic[Any], id: int, ranges: Ranges | None = None) -> None:
        """Fetch a schema that turned up in a message; what the registry lacks makes dead letters.

        All that are in the batch, known by its offset ranges, are learned at once: each would cost a try.
        """
        if self.registry is None:
            raise FlowError(f"schema {id} of {topic.name!r} is not known, and there is no registry to ask")
        before = self.known(topic)
        found = known_schemas(topic, self.registry)
        schemas, keys = {**before.schemas, **found.schemas}, {**before.keys, **found.keys}
        known = replace(before, schemas=schemas, keys=keys)
        looked_through = ranges or Tiers(self.settings).committed_ranges(topic.name)
        ids = {id, *self._schema_ids_in(topic, looked_through, known)} - {*schemas}
        self.registry.await_ids(ids)
        for each in sorted(ids):
            known = self._asked(known, topic, each, self.registry)
        self._known[topic.name] = known

    def _schema_ids_in(self, topic: Topic[Any], ranges: Ranges, known: KnownSchemas) -> list[int]:
        """The numbers of schemas in messages that are not known; if there are too many, some of them."""
        start, end = ({topic.name: {p: each[i] for p, each in ranges.items()}} for i in (0, 1))
        rows = kafka_rows(
            self.spark,
            self.settings,
            [topic.name],
            streaming=False,
            start=self._everywhere(topic, start),
            end=self._everywhere(topic, end),
            options=_AS_FAR_AS_THERE,
        )
        found = schema_ids(rows)
        fresh = found.where(~F.col("id").isin([*known.schemas, *known.unknown])).limit(_LEARNED_AT_ONCE)
        return [row.id for row in fresh.collect()]

    @staticmethod
    def _asked(known: KnownSchemas, topic: Topic[Any], id: int, registry: Registry) -> KnownSchemas:
        try:
            return replace(known, schemas={**known.schemas, id: registry.written(topic.subject, id)})
        except UnknownSchemaError:
            return replace(known, unknown=known.unknown | {id})

    def _typed(self, flow: Flow, name: str, topic: Topic[Any], span: Span) -> DataFrame:
        counted = self._counted(flow, name, span)
        rows, known = self._rows(flow, topic, span), self.known(topic)
        observed = ages(F.col("timestamp")) if rows.isStreaming else ()
        return typed(rows, topic, known, counted=counted, observed=observed)

    def _rows(self, flow: Flow, topic: Topic[Any], span: Span) -> DataFrame:
        nothing = span.ticks_only or (span.tables_only and not isinstance(topic, Table))
        limit = {} if _is_realtime(flow, span) else _AT_MOST
        return kafka_rows(
            self.spark,
            self.settings,
            [topic.name],
            streaming=flow.mode != "replay" and not span.as_table,
            start=self._everywhere(topic, span.start),
            end=self._everywhere(topic, span.end),
            options={**limit, **flow.options, **(_NOTHING if nothing else {})},
            archived=not span.in_kafka,
            ordered=flow.projection is None,
        )

    def _counted(self, flow: Flow, argument: str, span: Span) -> str | None:
        """The name under which malformed records are counted; real time has no room for counting."""
        counts = self.counting and (flow.mode != "realtime" or span.as_table)
        return f"{MALFORMED}{argument}" if counts else None

    def _everywhere(self, topic: Topic[Any], offsets: Offsets | None) -> Offsets | None:
        """Offsets of every partition, as Spark wants them; those that came later are at their beginning."""
        if offsets is None or topic.name not in offsets:
            return None
        first = {part: low for part, (low, _) in Tiers(self.settings).offsets(topic.name).items()}
        return {topic.name: {**first, **offsets[topic.name]}}

    def _looked_up(self, flow: Flow, name: str, table: Table[Any], span: Span) -> DataFrame:
        """What a table holds whenever a batch begins: as it is no stream, Spark reads it anew each time.

        Real time can join it only if every task has all of it.
        """
        rows = kafka_rows(self.spark, self.settings, [table.name], streaming=False)
        counted = self._counted(flow, name, span)
        found = current(typed(rows, table, self.known(table), counted=counted), str(table.key))
        return F.broadcast(found) if _is_realtime(flow, span) else found


def _refuse_missing(flow: Flow, results: DataFrame) -> None:
    """Refuse results that lack a column that the target wants; an `id` is made for them."""
    wanted = {*flow.target.upsert_key, *(flow.target.columns or ())}
    missing = sorted(wanted - {*results.columns, "id"})
    if missing:
        raise FlowError(
            f"flow {flow.name!r} gives no column {missing[0]!r}, which its target wants",
            hint=f"it gives {', '.join(results.columns)}",
        )


def _is_realtime(flow: Flow, span: Span) -> bool:
    return flow.mode == "realtime" and not (span.in_batches or span.as_table)


def named_topics(flows: Iterable[Flow]) -> dict[str, Topic[Any]]:
    """Every topic that flows read or write, by name."""
    found: dict[str, Topic[Any]] = {}
    for flow in flows:
        for topic in (*flow.reads.values(), *flow.looks_up.values(), *flow.target.topics):
            found[topic.name] = topic
    return found


def _header(name: str) -> Column:
    """The text of the last header of a name: ours come behind those that were there."""
    found = F.filter("headers", lambda each: each["key"] == name)
    return F.try_element_at(found, F.lit(-1))["value"].cast("string")
