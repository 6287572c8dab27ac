"""A feed: events into a flow's function, batch by batch, without a broker, and what comes out of it."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructField, StructType

from penstock.log import Topic
from penstock.process.spark.java import Java
from penstock.process.time.watermark import as_source, ticking
from penstock.targets.tasks import task_errors
from penstock.testing.feed_clock import FeedClock
from penstock.testing.topic_rows import TopicRows

_TRIES, _REST = 20, 0.1  # seconds


class Feed:
    """Runs a function of DataFrames as a stream that is fed by hand.

        with Feed(spark, count_views, views=views) as feed:
            feed.send(views=[View("/", at(0)), View("/", at(70))])
            feed.advance(at(120))
            assert [row.views for row in feed.results] == [1, 1]

    Each argument of the function is given as a topic, whose events are sent, or as a schema, whose rows are.
    Of a topic the function sees what it would see of the real one: `_source` beside the event's columns,
    where an event counts as written at its own time unless `Sent(event, written=…)` says otherwise, and of a
    Table also `_deleted`, which `Tombstone(key)` sets.

    A call of `send` is a batch, after which the watermark moves as it does in a flow; `advance` moves it to a
    time. `results` are all rows so far, those for side outputs included.
    """

    def __init__(
        self,
        spark: SparkSession,
        function: Callable[..., DataFrame],
        *,
        output: str = "append",
        **reads: Topic[Any] | StructType | str,
    ) -> None:
        self.results: list[Row] = []
        self._sources = {name: _Source(spark, read) for name, read in reads.items()}
        self._clock = FeedClock(_Source(spark, "time timestamp, clock boolean"))
        self._folder = tempfile.TemporaryDirectory(prefix="penstock-feed-", ignore_cleanup_errors=True)
        with ticking(self._clock):
            made = function(**{name: as_source(name, source.frame) for name, source in self._sources.items()})
        writer = made.writeStream.outputMode(output).foreachBatch(self._take)
        self._query = writer.option("checkpointLocation", self._folder.name).start()

    def send(self, **events: Sequence[Any]) -> list[Row]:
        """Send events as one batch, and return what came out."""
        with self._between_batches():
            taken = {name: self._sources[name].add(rows) for name, rows in events.items()}
        before = len(self.results)
        self._run()
        if self._clock.learn(taken):
            self._run()
        return self.results[before:]

    def advance(self, to: datetime) -> list[Row]:
        """Move the watermark, and return what came out."""
        before = len(self.results)
        self._clock.move(to)
        self._run()
        return self.results[before:]

    def close(self) -> None:
        """End the stream. Spark may still be tidying its state up: what is left then is removed once more."""
        self._query.stop()
        self._folder.cleanup()
        for _ in range(_TRIES):
            if not Path(self._folder.name).exists():
                break
            time.sleep(_REST)
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _between_batches(self) -> Iterator[None]:
        """Let no batch begin meanwhile: it would have some of the events only."""
        lock = self._query._jsq.streamingQuery().awaitProgressLock()
        lock.lock()
        try:
            yield
        finally:
            lock.unlock()

    def _run(self) -> None:
        with task_errors():
            self._query.processAllAvailable()

    def _take(self, rows: DataFrame, number: int) -> None:  # noqa: ARG002
        self.results += rows.collect()


class _Source:
    """One input: Spark's stream in memory, which takes rows of the JVM."""

    def __init__(self, spark: SparkSession, read: Topic[Any] | StructType | str) -> None:
        self._spark = spark
        self._rows = TopicRows(read) if isinstance(read, Topic) else None
        self._schema = self._rows.schema if self._rows else _schema(read)
        jvm: Java = spark._jvm
        streams = getattr(jvm.org.apache.spark.sql.execution.streaming.runtime, "MemoryStream$")
        kind = spark._jsparkSession.parseDataType(self._schema.json())
        encoder = jvm.org.apache.spark.sql.Encoders.row(kind)
        self._stream = getattr(streams, "MODULE$").apply(spark._jsparkSession, 1, encoder)
        self.frame = DataFrame(self._stream.toDF(), spark)

    def add(self, rows: Sequence[Any]) -> list[dict[str, Any]]:
        made = self._values if self._rows is None else self._rows.row
        taken = [made(row) for row in rows]
        self._put(taken)
        return taken

    def _values(self, row: Any) -> dict[str, Any]:
        return dict(row) if isinstance(row, Mapping) else dict(zip(self._schema.names, row, strict=True))

    def _put(self, rows: list[dict[str, Any]]) -> None:
        complete = [tuple(row.get(name) for name in self._schema.names) for row in rows]
        nullable = StructType([StructField(field.name, field.dataType) for field in self._schema])
        found = self._spark.createDataFrame(complete, nullable)._jdf.collectAsList()
        self._stream.addData(self._spark._jvm.PythonUtils.toSeq(found))  # type: ignore[union-attr]


def _schema(read: Any) -> StructType:
    return cast(StructType, StructType.fromDDL(read) if isinstance(read, str) else read)
