"""Numbers into a table, a million at a time."""

from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from penstock.events import Event
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.targets import PostgresTable

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Count(Event):
    key: str
    number: int
    at: datetime


counts = Topic("large.counts", Count, key="key", partitions=2)
counting = Pipeline("counting")


@counting.flow(reads={"counts": counts}, writes=PostgresTable("large_counts", key="key", write="upsert"))
def keep(counts: DataFrame) -> DataFrame:
    return counts
