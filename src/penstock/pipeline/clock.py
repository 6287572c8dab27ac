"""The clock of a flow: while nothing comes, times are written to a topic, and watermarks move with them.

They go through the log so that a batch that is repeated meets the same watermark.
"""

import time
from datetime import timedelta

import confluent_kafka
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from penstock.durations import duration
from penstock.log import Broker
from penstock.log.client import Ear, configuration
from penstock.log.ledger import Offsets
from penstock.pipeline.job import Job
from penstock.process.source import kafka_rows
from penstock.process.windows import Watermark
from penstock.settings import Settings

_CONFIG = {"cleanup.policy": "delete", "retention.ms": str(24 * 60 * 60 * 1000)}


class Clock:
    """Ticks for the watermarks of one flow that have an idle policy; for others it does nothing."""

    def __init__(self, spark: SparkSession, settings: Settings, job: Job) -> None:
        self.topic = f"_penstock_clock.{job.label}"
        self._spark, self._settings = spark, settings
        self._pause = duration(job.pause)  # for so long, what has come may wait for its batch
        self._idle: timedelta | None = None
        self._start: Offsets | None = None
        self._producer: confluent_kafka.Producer | None = None
        self._busy = time.monotonic()

    @property
    def topics(self) -> list[str]:
        """What the flow reads of it: nothing, unless one of its watermarks asked for it."""
        return [] if self._idle is None else [self.topic]

    def begin_at(self, start: Offsets | None) -> None:
        """Let what is planned from now on read the ticks from there on."""
        self._start = start

    def __call__(self, watermark: Watermark) -> DataFrame | None:
        """Return the stream of ticks for a watermark; its column is `time`."""
        if watermark.idle is None:
            return None
        idle = duration(watermark.idle)
        self._idle = max(idle, self._idle or idle)  # none may move sooner than it says
        Broker(self._settings).ensure(self.topic, 1, _CONFIG)
        start = {topic: place for topic, place in (self._start or {}).items() if topic == self.topic}
        lost = {"failOnDataLoss": "false"}  # a tick that nobody read in time would be one of the past anyway
        rows = kafka_rows(
            self._spark, self._settings, [self.topic], streaming=True, start=start, options=lost
        )
        return rows.select(F.col("timestamp").alias("time"))

    def look(self, query: StreamingQuery) -> None:
        """Write the time down if for so long there was nothing to work on; a tick is something, too."""
        if self._idle is None:
            return
        now = time.monotonic()
        if query.status["isDataAvailable"]:
            self._busy = now
        elif now - self._busy > (self._idle + self._pause).total_seconds():
            self._busy = now
            self._tick(time.time() - self._idle.total_seconds())

    def close(self) -> None:
        """Let go of the broker."""
        if self._producer is not None:
            self._producer.flush(5)

    def _tick(self, at: float) -> None:
        if self._producer is None:
            self._producer = confluent_kafka.Producer(configuration(self._settings, {}, {}, Ear()))
        self._producer.produce(self.topic, b"", timestamp=int(1000 * at))
        self._producer.poll(0)
