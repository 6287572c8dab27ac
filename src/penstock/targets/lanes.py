"""A sink of lanes: a batch's rows are spread over them, and each writes its part and its entry at once."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from penstock.errors import SinkError
from penstock.log.ledger import Batch, Entry
from penstock.points import reach
from penstock.targets.computed import compute_up_to_last_shuffle
from penstock.targets.sink import BeforeCommit, Guarantee, SinkOptions, nothing
from penstock.targets.tasks import task_errors

ORDER = "_order"
_LANE = "_lane"


class Lane(Protocol):
    """A part of a target that has one writer; whoever opens it shuts out those who did before.

    `entry` is what was written down last. `write` writes rows and an entry so that both are there
    afterwards, or neither. It may come in another thread than the opening did.
    """

    entry: Entry

    def write(self, rows: Iterable[pa.RecordBatch], entry: Entry) -> None: ...

    def close(self) -> None: ...


class Lanes(Protocol):
    """All lanes of a target; Spark carries it to the executors, so it holds nothing that is open.

    `kind` is in the names of crash points. `prepare` makes the ledger, if it is missing, and returns how many
    lanes there are: as many as are wanted the first time, and as many as then ever after. `read` returns
    their entries and shuts nobody out; there are none before the first time. `spread` brings rows to lanes:
    the same row to the same lane whenever its batch is made, and a lane's to the partition of its number.
    """

    @property
    def kind(self) -> str: ...

    def prepare(self, wanted: int) -> int: ...

    def read(self) -> tuple[Entry, ...]: ...

    def open(self, number: int) -> Lane: ...

    def spread(self, rows: DataFrame, count: int) -> DataFrame: ...


def spread_by(rows: DataFrame, count: int, keys: Sequence[str | Column]) -> DataFrame:
    """Spread rows by what they hold in some columns, each lane's in their order or else as they came.

    They are numbered before they are shuffled: what arrives first afterwards is a matter of chance.
    """
    numbered = rows.withColumn(_LANE, F.pmod(F.hash(*keys), F.lit(count)).cast("int"))
    order = [F.col(ORDER)] if ORDER in rows.columns else []
    placed = numbered.withColumn(ORDER, F.struct(*order, F.monotonically_increasing_id()))
    return spread_by_number(placed, count)


def spread_by_number(rows: DataFrame, count: int) -> DataFrame:
    """Spread rows by the number of their lane in `_lane`, each lane's in their order."""
    laned = rows.repartitionById(count, F.col(_LANE))
    ordered = laned.sortWithinPartitions(ORDER) if ORDER in rows.columns else laned
    return ordered.drop(_LANE, ORDER)


class LaneSink:
    """Takes in the batches of one flow; each lane is exactly once, and a batch is visible lane by lane.

    The number of lanes is frozen when the sink is first opened: the same row has to come to the same lane
    when its batch is repeated.
    """

    def __init__(self, lanes: Lanes, options: SinkOptions) -> None:
        self.id = options.id
        self.lanes = options.lanes
        self._lanes = lanes
        self._guarantee = options.guarantee
        self._epoch = 0
        self._entries: list[Entry] = []

    def entries(self) -> tuple[Entry, ...]:
        """What the lanes have written down last."""
        return self._lanes.read()

    def open(self, *, anew: bool = False) -> tuple[Entry, ...]:
        """Become the sink's writer: end what was left open, and take the ledger over."""
        self.lanes = self._lanes.prepare(self.lanes)
        with ThreadPoolExecutor(self.lanes) as pool, ExitStack() as opened:
            first = opened.enter_context(closing(self._lanes.open(0)))  # whoever has it may open the others
            opening = [pool.submit(self._lanes.open, number) for number in range(1, self.lanes)]
            for each in opening:
                opened.callback(_close, each)
            lanes = [first, *(each.result() for each in opening)]
            self._epoch = max(lane.entry.epoch for lane in lanes) + 1
            self._entries = list(pool.map(lambda lane: self._claim(lane, anew), lanes))
        return tuple(self._entries)

    def take_over(self) -> tuple[Entry, ...]:
        """Shut an earlier writer out, as opening does."""
        return self.open()

    def write(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit = nothing) -> bool:
        """Write a batch; what some lanes have written already is left out."""
        if not self._entries:
            raise SinkError(f"sink {self.id!r} is not open", hint="call open() before write()")
        if all(entry.batch == batch for entry in self._entries):
            return False
        self._write_lanes(rows, batch, before_commit)
        self._entries = [Entry(self._epoch, batch)] * self.lanes
        reach(f"sink.{self._lanes.kind}.written", self.id)
        return True

    def close(self) -> None:
        """Nothing is held between batches."""

    def _claim(self, lane: Lane, anew: bool) -> Entry:
        """Write down that a new writer is at work, so that an older one can't come back."""
        entry = Entry(self._epoch) if anew else replace(lane.entry, epoch=self._epoch)
        lane.write((), entry)
        reach(f"sink.{self._lanes.kind}.claimed", self.id)
        return entry

    def _write_lanes(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit) -> None:
        """Let executors write; lanes that Spark planned no task for, being empty, are written here.

        Lanes commit in their tasks, so that what is to happen before happens before these begin.
        """
        spread = self._lanes.spread(rows, self.lanes)
        work = self._work(batch, tuple(spread.columns))
        written = spread.toDF(*(f"c{place}" for place in range(len(work.names)))).mapInArrow(work, "lane int")
        with task_errors():
            if before_commit is not nothing:
                compute_up_to_last_shuffle(written)
                before_commit(written)
            done = written.collect()
        for number in set(range(self.lanes)) - {row.lane for row in done}:
            work.write(number, ())

    def _work(self, batch: Batch, names: tuple[str, ...]) -> "LaneWork":
        return LaneWork(self._lanes, self.id, self._epoch, batch, self._guarantee, names)


def _close(opening: "Future[Lane]") -> None:
    """Close a lane, if it was opened at all."""
    if opening.exception() is None:
        opening.result().close()


@dataclass(frozen=True)
class LaneWork:
    """What a task does with the rows of its lane; their columns have no names that Spark might not quote."""

    lanes: Lanes
    sink: str
    epoch: int
    batch: Batch
    guarantee: Guarantee
    names: tuple[str, ...]

    def __call__(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        lane = context.partitionId() if context else 0
        self.write(lane, (batch.rename_columns(self.names) for batch in rows))
        yield pa.RecordBatch.from_pydict({"lane": pa.array([lane], pa.int32())})

    def write(self, number: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Open the lane, which shuts out every earlier task of it, and write what it owes."""
        with closing(self.lanes.open(number)) as lane:
            lane.entry.refuse_older(self.epoch, self.sink)
            if not lane.entry.is_due(self.batch):
                return
            if self.guarantee != "at-most-once":
                self.write_due(lane, rows)
                return
            self.write_due(lane, ())
        self._write_at_most_once(number, rows)

    def write_due(self, lane: Lane, rows: Iterable[pa.RecordBatch]) -> None:
        """Write rows and their entry."""
        lane.write(rows, Entry(self.epoch, self.batch))
        reach(f"sink.{self.lanes.kind}.committed", self.sink)

    def _write_at_most_once(self, number: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Write rows whose entry came first, unless a new writer has come since: then they stay lost."""
        with closing(self.lanes.open(number)) as lane:
            lane.entry.refuse_older(self.epoch, self.sink)
            lane.write(rows, lane.entry)
