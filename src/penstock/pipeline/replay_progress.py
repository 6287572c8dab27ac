"""How far a replay is: the records that Spark has read, of those that are there, and how long it takes."""

import time
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from penstock.log.archive.tiers import Tiers
from penstock.pipeline.flow import Flow
from penstock.process.spark.consumed_records import ConsumedRecords
from penstock.settings import Settings


@dataclass
class Estimate:
    """A rate and the time that is left, of what was read and when.

    >>> estimate = Estimate(there=1_000, began=0.0)
    >>> estimate.see(250, now=5.0)
    >>> estimate.rate, estimate.seconds_left, str(estimate)
    (50.0, 15.0, '250 of 1,000 read (25 %), 50/s, 15 s left')
    """

    there: int
    began: float = field(default_factory=time.monotonic)
    read: int = 0
    seconds: float = 0.0

    def see(self, read: int, now: float | None = None) -> None:
        """Note how much was read by now; more than there is counts as all of it.

        The clock begins with the first record and ends with the last one.
        """
        moment = time.monotonic() if now is None else now
        if not read and not self.read:
            self.began = moment
        if self.read < self.there:
            self.seconds = max(0.0, moment - self.began)
        self.read = max(self.read, min(read, self.there))

    @property
    def rate(self) -> float:
        return self.read / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """How long it takes to read the rest at this rate; None before anything was read."""
        return (self.there - self.read) / self.rate if self.rate else None

    def __str__(self) -> str:
        share = 100 * self.read // self.there if self.there else 100
        said = f"{self.read:,} of {self.there:,} read ({share} %), {self.rate:,.0f}/s"
        if self.read >= self.there:
            return f"{said}, computing and writing"
        return said if self.seconds_left is None else f"{said}, {self.seconds_left:,.0f} s left"


class ReplayProgress:
    """Asks what a Spark session has read since it was made.

    Spark's Kafka source does not say how many records its tasks have read; where they run in this process,
    Kafka's own consumers do. On a cluster, the tasks that have ended have to do.
    """

    def __init__(self, spark: SparkSession, settings: Settings, flows: list[Flow]) -> None:
        self._consumers = ConsumedRecords(spark)
        self._is_local = bool(spark.sparkContext._jsc.sc().isLocal())
        self._tracker = spark.sparkContext.statusTracker()
        self._before = {*self._tracker.getJobIdsForGroup()}
        self._begun = self._consumed()
        self._read: dict[str, int] = {}
        self.there = {flow.name: _there(settings, flow) for flow in flows}
        self.estimate = Estimate(sum(self.there.values()))

    def look(self) -> Estimate:
        """Ask how much was read by now."""
        for client, count in self._consumed().items():  # one that is closed is not asked any more
            self._read[client] = max(self._read.get(client, 0), count - self._begun.get(client, 0))
        ended = int(self._share_of_tasks() * self.estimate.there)
        self.estimate.see(sum(self._read.values()) if self._is_local else ended)
        return self.estimate

    def _consumed(self) -> dict[str, int]:
        return self._consumers.by_client() if self._is_local else {}

    def _share_of_tasks(self) -> float:
        jobs = {*self._tracker.getJobIdsForGroup()} - self._before
        infos = [self._tracker.getJobInfo(job) for job in jobs]
        stages = [self._tracker.getStageInfo(id) for info in infos if info for id in info.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return sum(stage.numCompletedTasks for stage in stages if stage) / tasks if tasks else 0.0


def _there(settings: Settings, flow: Flow) -> int:
    """How many records a flow has to read, those in archives included."""
    tiers = Tiers(settings)
    ranges = [tiers.committed_ranges(topic.name) for topic in flow.reads.values()]
    return sum(end - first for each in ranges for first, end in each.values())
