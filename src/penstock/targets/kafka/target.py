"""Kafka as a target: results as messages of a topic, and those of side outputs in the same transactions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from penstock.log import Broker, Topic
from penstock.process.spark.java_client import java_settings
from penstock.process.spark.logical import is_narrow, logical_plan
from penstock.process.wire.events import typed
from penstock.process.wire.messages import MADE_BY, encoded
from penstock.process.wire.source import kafka_rows
from penstock.settings import Settings
from penstock.targets.compared import Compared
from penstock.targets.comparison import compare_contents
from penstock.targets.kafka.sink import KafkaSink
from penstock.targets.sink import SinkOptions
from penstock.targets.target import Guarantee, Guarantees, Inspection, Mode, Results, Target

CRASH_POINTS = tuple(f"sink.kafka.{name}" for name in ("opened", "sent", "committed", "written"))
MESSAGE = ("topic", "key", "value")  # what messages are compared by
_REALTIME_LINGER = "3"  # ms; with none, each result is a request, and half of the machine is busy with those


@dataclass(frozen=True)
class KafkaTarget(Target):
    """A topic that takes a flow's results, and the topics of its side outputs.

    `names` are what the flow's rows call these, if they are topics beside those of a flow at work.
    """

    topic: Topic[Any]
    side_outputs: tuple[Topic[Any], ...] = ()
    names: tuple[str, ...] | None = None

    guarantees: ClassVar[Guarantees] = {
        "stream": ("exactly-once", "at-least-once", "at-most-once"),
        "realtime": ("effectively-once", "at-least-once"),
        "replay": ("exactly-once",),
    }
    crash_points: ClassVar[tuple[str, ...]] = CRASH_POINTS
    keeps_former: ClassVar[bool] = True  # the results of before stay where they are

    @property
    def title(self) -> str:
        return f"topic {self.topic.name}"

    @property
    def topics(self) -> tuple[Topic[Any], ...]:
        return (self.topic, *self.side_outputs)

    def rows(self, results: Results) -> DataFrame:
        """Return results as messages."""
        return encoded(
            results.frame,
            self.topic,
            flow=results.flow,
            side_outputs=self._named,
            schemas=results.schemas(self.topics),
            one_to_one=results.one_to_one,
            shuffled=not is_narrow(logical_plan(results.frame)),
            maker=results.maker,
            passed_on=results.headers,
        )

    @property
    def _named(self) -> dict[str, Topic[Any]]:
        names = self.names or tuple(topic.name for topic in self.side_outputs)
        return dict(zip(names, self.side_outputs, strict=True))

    def beside(self, name: str) -> Self:
        """Return topics of the same declarations beside these: a flow's shadow writes them."""
        aside = tuple(_beside(topic, name) for topic in self.side_outputs)
        return replace(self, topic=_beside(self.topic, name), side_outputs=aside, names=tuple(self._named))

    def remove(self, settings: Settings) -> bool:
        """Delete the topics."""
        broker = Broker(settings)
        for name in broker.topics([topic.name for topic in self.topics]):
            broker.delete(name)
        return True

    def sink(self, schema: StructType, options: SinkOptions) -> KafkaSink:
        return KafkaSink(options)

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame:
        """Return the flow's messages in the topic, typed: all columns, and where they are."""
        found = written_by(spark, inspection.settings, [self.topic.name], inspection.flow)
        return typed(found, self.topic, inspection.known(self.topic))

    def compare(self, due: DataFrame, inspection: Inspection) -> Compared:
        """Compare messages."""
        return compare_messages(due, self.topics, inspection)

    def is_native(self, mode: Mode, guarantee: Guarantee) -> bool:
        """Spark's own writer is at least once, and all that there is in real time."""
        return mode == "realtime" or guarantee == "at-least-once"

    def native_writer(self, rows: DataFrame, mode: Mode, settings: Settings) -> DataStreamWriter:
        options = {f"kafka.{name}": value for name, value in java_settings(settings).items()}
        if mode == "realtime":
            options["kafka.linger.ms"] = _REALTIME_LINGER
        return rows.writeStream.format("kafka").options(**options)


def _beside(topic: Topic[Any], name: str) -> Topic[Any]:
    return replace(topic, name=f"{topic.name}.{name}")


def compare_messages(due: DataFrame, topics: Sequence[Topic[Any]], inspection: Inspection) -> Compared:
    """Compare the messages that must be in topics with those that the flow has written there."""
    names = [topic.name for topic in topics]
    found = written_by(due.sparkSession, inspection.settings, names, inspection.flow)
    return compare_contents(
        due.select(*MESSAGE),
        found.select(*MESSAGE),
        lambda: inspection.possible().select(*MESSAGE),
        once=inspection.once,
        ran=inspection.ran,
    )


def written_by(spark: SparkSession, settings: Settings, topics: Sequence[str], flow: str) -> DataFrame:
    """Return what stands in topics and was written by a flow; others may write there too."""
    ends = {name: Broker(settings).committed_end(name) for name in topics}
    rows = kafka_rows(spark, settings, list(ends), streaming=False, end=ends)

    def says_so(header: Column) -> Column:
        maker = F.regexp_extract(header["value"].cast("string"), "^[^ @]*", 0)
        return (header["key"] == MADE_BY) & (maker == flow)

    first = F.coalesce(says_so(F.get("headers", F.lit(0))), F.lit(False))  # spares most rows the search
    return rows.where(F.when(first, True).otherwise(F.exists("headers", says_so)))
