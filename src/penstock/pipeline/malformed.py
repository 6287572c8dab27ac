"""Malformed records: no flow's position passes one that is neither decoded nor in the dead letters.

A flow counts them in the scan that it makes anyway. Only where a batch has some, its offset range is read
once more, and what is found is written to the dead letters before anything of the batch is committed.
"""

import threading
from collections.abc import Iterable, Mapping, Set
from typing import Any

from pyspark.sql import DataFrame

from penstock.identity import Identity
from penstock.log import Broker, Topic
from penstock.log.judged import Decoder, Judged
from penstock.log.ledger import Batch, Entry, Offsets
from penstock.log.ranges import Ranges
from penstock.pipeline.job import Job
from penstock.pipeline.plan import MALFORMED, Planner
from penstock.process.spark.java import Java
from penstock.targets.kafka.dead_letters import (
    DeadLetterWork,
    read_judged,
    write_dead_letters,
)
from penstock.targets.kafka.lane import read_entry

_CONFIG = {"cleanup.policy": "compact", "retention.ms": "-1"}


class Judge:
    """Brings the malformed records of a pipeline's topics to their dead letters, each once."""

    def __init__(self, maker: Identity, planner: Planner) -> None:
        self._maker, self._planner = maker, planner
        self._broker = Broker(planner.settings)
        self._lock = threading.Lock()  # the flows of a process would only shut each other out
        self._broker.ensure(maker.judged, 1, _CONFIG)

    def settle(self, job: Job, batch: Batch, since: Offsets, counted: Mapping[str, int | None]) -> int:
        """See to the malformed records of a batch; `counted` is how many there are, None if unknown.

        What the flow has read `since` these offsets was settled with the batches before, by the same decoder.
        """
        suspicious = {name for name, count in counted.items() if count != 0}
        reads = {topic.name for name, topic in job.flow.reads.items() if name in suspicious}
        tables = {table.name for name, table in job.flow.looks_up.items() if name in suspicious}
        return self.judge(job, reads, tables, since, batch.start, batch.end)

    def judge(
        self, job: Job, reads: Set[str], tables: Set[str], since: Offsets, start: Offsets, end: Offsets
    ) -> int:
        """Write what is malformed between two positions, and in whole tables, unless it was written before.

        All that a flow has read by its present decoder is known to be judged then: one range for each
        partition, not one for each malformed record.
        """
        whole = {name: self._broker.committed_ranges(name) for name in tables}
        ranges = {name: between(name, start, end) for name in reads} | whole
        with self._lock:
            topics = {topic.name: topic for topic in _topics(job) if topic.name in ranges}
            ids = self._broker.topic_ids(topics)
            by = {name: Decoder(ids[name], self._planner.decoder(topic)) for name, topic in topics.items()}
            judged = self._judged(by)
            known = {name: judged.known(name, each) for name, each in by.items()}
            lacking = {name: known[name].ranges.lacking(each) for name, each in ranges.items()}
            lacking = {name: each for name, each in lacking.items() if each}
            if not lacking:
                return 0
            begun = {name: _earlier(start.get(name, {}), since.get(name, {})) for name in reads}
            passed = {name: between(name, begun, end) for name in reads} | whole
            again = {name for name, each in lacking.items() if known[name].earlier.meets(each)}
            malformed = self._malformed(job, [topics[name] for name in lacking], lacking, again)
            kafka = self._planner.settings.client()
            work = DeadLetterWork(kafka, self._maker, by, {name: passed[name] for name in lacking})
            return write_dead_letters(malformed, work)

    def _malformed(
        self, job: Job, topics: list[Topic[Any]], ranges: Mapping[str, Ranges], again: Set[str]
    ) -> DataFrame:
        """What is malformed, without the letters that earlier decoders have written in some topics."""
        label = self._maker.label
        found = self._planner.malformed(label, topics, ranges, job.flow.options)
        if not again:
            return found
        letters = self._planner.letters(self._broker.topic_ids(again), label)
        return found.join(letters, ["source", "partition", "offset"], "left_anti").select(*found.columns)

    def _judged(self, by: Mapping[str, Decoder]) -> Judged:
        known = read_judged(self._planner.settings, self._maker)
        if all(name in known.topics for name in by):
            return known
        return self._with_earlier_release(known, by)

    def _with_earlier_release(self, known: Judged, by: Mapping[str, Decoder]) -> Judged:
        """What the query that once looked for malformed records beside the flows has looked through."""
        if not self._broker.topics([self._maker.ledger]):
            return known
        last: Entry = read_entry(self._planner.settings, self._maker.label, 0)
        for topic, ends in (last.batch.end if last.batch else {}).items():
            if topic in by and topic not in known.topics:
                known = known.adding(topic, by[topic], {p: (0, end) for p, end in ends.items()})
        return known


def between(topic: str, start: Offsets, end: Offsets) -> Ranges:
    """Return the offset ranges of a topic from one position to another; a new partition begins at 0."""
    first = start.get(topic, {})
    return {partition: (first.get(partition, 0), last) for partition, last in end.get(topic, {}).items()}


def _earlier(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """The lesser offset of each partition; where one of them has none, the other one's."""
    return {each: min(at[each] for at in (one, other) if each in at) for each in {*one, *other}}


def counts(job: Job, observed: Java) -> dict[str, int | None]:
    """Read from Spark's observed metrics how many malformed records each source of a job had.

    A source that the plan had no use for was not looked at: nothing is known of it.
    """
    return {name: count_in(observed, f"{MALFORMED}{name}") for name in (*job.flow.reads, *job.flow.looks_up)}


def observed_in(frame: DataFrame) -> Java:
    """What Spark has observed in a DataFrame that was run."""
    return frame._jdf.queryExecution().observedMetrics()


def count_in(observed: Java, name: str) -> int | None:
    """Read a count from Spark's observed metrics; None if there is none of this name."""
    return int(observed.apply(name).getLong(0)) if observed.contains(name) else None


def _topics(job: Job) -> Iterable[Topic[Any]]:
    return {topic.name: topic for topic in (*job.flow.reads.values(), *job.flow.looks_up.values())}.values()
