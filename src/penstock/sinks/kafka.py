"""The Kafka sink: rows into topics, each batch once in each lane, by transactions."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import accumulate, repeat
from typing import Literal

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.durations import duration
from penstock.log.broker import Broker
from penstock.log.client import asking
from penstock.log.ledger import Batch, Entry
from penstock.log.transactional_writer import Message
from penstock.points import reach
from penstock.settings import Settings
from penstock.sinks.computed import compute_up_to_last_shuffle
from penstock.sinks.lane import Lane, ledger_topic, read_entry
from penstock.sinks.sink import BeforeCommit, nothing
from penstock.sinks.tasks import task_errors

Guarantee = Literal["exactly-once", "at-most-once"]
_SPREAD, _ORDER, _LANE = "_spread", "_order", "_lane"


class KafkaSink:
    """Writes rows of (topic, key, value, headers) in transactions.

    Rows are spread over `lanes`; each lane is exactly once, and a batch becomes visible lane by lane. The
    number of lanes is frozen in the ledger when the sink is first opened: the same row has to come to the
    same lane when its batch is repeated. So rows go by `_spread`, a number that does not depend on what they
    hold; where it is null they go by their key, and their first header says which lane it was. A lane is
    written in the order of `_order`. Neither column need be there.
    """

    def __init__(
        self,
        settings: Settings,
        id: str,
        *,
        lanes: int,
        guarantee: Guarantee = "exactly-once",
        timeout: str | timedelta = "1 minute",
    ) -> None:
        self.id = id
        self.lanes = lanes
        self._settings = settings
        self._guarantee = guarantee
        self._timeout_ms = duration(timeout) // timedelta(milliseconds=1)
        self._epoch = 0
        self._entries: list[Entry] = []

    def entries(self) -> tuple[Entry, ...]:
        """What the lanes have written down last."""
        topic = ledger_topic(self.id)
        found = Broker(self._settings).topics([topic])
        count = found[topic].partitions if found else 0
        with asking(f"read the ledger of {self.id!r}"):
            return tuple(read_entry(self._settings, self.id, number) for number in range(count))

    def open(self, *, anew: bool = False) -> tuple[Entry, ...]:
        """Become the sink's writer: end what was left open, and take the ledger over."""
        self._freeze_lanes()
        with ThreadPoolExecutor(self.lanes) as pool:
            lanes = list(pool.map(self._lane, range(self.lanes)))
            self._epoch = max(lane.entry.epoch for lane in lanes) + 1
            list(pool.map(lambda lane: lane.claim(self._epoch, anew=anew), lanes))
        self._entries = [lane.entry for lane in lanes]
        return tuple(self._entries)

    def write(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit = nothing) -> bool:
        """Write a batch; what some lanes have written already is left out."""
        if all(entry.batch == batch for entry in self._entries):
            return False
        self._write_lanes(rows, batch, before_commit)
        self._entries = [Entry(self._epoch, batch)] * self.lanes
        reach("sink.kafka.written", self.id)
        return True

    def close(self) -> None:
        """Nothing is held between batches that the next writer could not end."""

    def _freeze_lanes(self) -> None:
        topic, broker = ledger_topic(self.id), Broker(self._settings)
        broker.ensure(topic, self.lanes, {"cleanup.policy": "compact", "retention.ms": "-1"})
        self.lanes = broker.topic(topic).partitions

    def _lane(self, number: int) -> Lane:
        return Lane(self._settings, self.id, number, self._timeout_ms)

    def _write_lanes(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit) -> None:
        """Let executors write; lanes that Spark planned no task for, being empty, are written here.

        Lanes commit in their tasks, so that what is to happen before happens before these begin.
        """
        work = self._work(batch)
        written = self._spread(rows).mapInArrow(work, "lane int, sent long")
        with task_errors():
            if before_commit is not nothing:
                compute_up_to_last_shuffle(written)
                before_commit(written)
            done = written.collect()
        for number in set(range(self.lanes)) - {row.lane for row in done}:
            work.write(number, ())

    def _work(self, batch: Batch) -> "LaneWork":
        kafka = self._settings.client()
        return LaneWork(kafka, self.id, self._epoch, self._timeout_ms, batch, self._guarantee)

    def _spread(self, rows: DataFrame) -> DataFrame:
        """The same row comes to the same lane whenever its batch is made."""
        by_key = F.hash(F.coalesce("key", "value")).cast("long")
        spread = F.coalesce(_SPREAD, by_key) if _SPREAD in rows.columns else by_key
        numbered = rows.withColumn(_LANE, F.pmod(spread, F.lit(self.lanes)).cast("int"))
        if _SPREAD in rows.columns:
            numbered = numbered.withColumn("headers", _with_lane())
        laned = numbered.repartitionById(self.lanes, F.col(_LANE))
        ordered = laned.sortWithinPartitions(_ORDER) if _ORDER in rows.columns else laned
        return ordered.select("topic", "key", "value", "headers")


def _with_lane() -> Column:
    """Headers whose first one also names the lane of a row that was spread by its key."""
    name = F.concat(F.lit(" lane/"), F.col(_LANE).cast("string")).cast("binary")

    def named(header: Column, place: Column) -> Column:
        laned = header.withField("value", F.concat(header["value"], name))
        return F.when(place == 0, laned).otherwise(header)

    return F.when(F.col(_SPREAD).isNull(), F.transform("headers", named)).otherwise(F.col("headers"))


@dataclass(frozen=True)
class LaneWork:
    """What a task does with the rows of its lane."""

    kafka: dict[str, str] = field(repr=False)
    sink: str
    epoch: int
    timeout_ms: int
    batch: Batch
    guarantee: Guarantee

    def __call__(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        lane = context.partitionId() if context else 0
        sent = self.write(lane, messages(rows))
        yield pa.RecordBatch.from_pydict({"lane": pa.array([lane], pa.int32()), "sent": pa.array([sent])})

    def write(self, number: int, rows: Iterable[Message]) -> int:
        """Open the lane, which shuts out every earlier task of it, and write what it owes."""
        lane = Lane(Settings(kafka=self.kafka), self.sink, number, self.timeout_ms)
        lane.serve(self.epoch)
        write = lane.write if self.guarantee == "exactly-once" else lane.write_at_most_once
        return write(rows, self.batch)


def messages(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """Yield the rows of Arrow batches as messages."""
    for batch in batches:
        keys, values = (batch.column(name).to_pylist() for name in ("key", "value"))
        topics, headers = _texts(batch.column("topic")), _headers(batch.column("headers"))
        yield from zip(topics, keys, values, headers, strict=True)


def _texts(column: pa.StringArray) -> Iterable[str]:
    """Nearly always they are all the same: a text for each row would be made for nothing."""
    different = column.unique().to_pylist()
    return repeat(different[0], len(column)) if len(different) == 1 else column.to_pylist()


def _headers(column: pa.ListArray) -> Iterable[list[tuple[str, bytes]]]:
    """All pairs are made at once: a list of structs, turned into Python row by row, takes twice as long."""
    names, values = column.flatten().flatten()
    pairs = list(zip(_texts(names), values.to_pylist(), strict=True))
    lengths = column.value_lengths().fill_null(0)
    if pairs and len(pairs) == len(lengths) and lengths.unique().to_pylist() == [1]:
        return map(list, zip(pairs, strict=True))
    ends = list(accumulate(lengths.to_pylist()))
    return [pairs[start:end] for start, end in zip([0, *ends], ends, strict=False)]
