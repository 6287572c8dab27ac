"""Side outputs beside a target: of each batch, what has a message goes to topics, the rest to the target."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.errors import LedgerError, TargetError
from penstock.log import Topic
from penstock.log.ledger import Batch, Entry
from penstock.points import reach
from penstock.process.wire.messages import MESSAGE, with_messages
from penstock.targets.compared import Compared
from penstock.targets.kafka.sink import KafkaSink
from penstock.targets.kafka.target import CRASH_POINTS, KafkaTarget, compare_messages
from penstock.targets.sink import BeforeCommit, Sink, SinkOptions, nothing
from penstock.targets.target import Guarantee, Guarantees, Inspection, Mode, Results, Target


def target_of(writes: Topic[Any] | Target, side_outputs: Iterable[Topic[Any]]) -> Target:
    """Return what a flow writes as one target; with a topic, side outputs are in its transactions."""
    aside = tuple(side_outputs)
    if isinstance(writes, Topic):
        return KafkaTarget(writes, aside)
    if isinstance(writes, KafkaTarget) and writes.names is not None and not aside:
        return writes  # beside the topics of a flow at work
    if isinstance(writes, KafkaTarget):
        raise TargetError("writes= is a KafkaTarget, which flows make themselves", hint="give its topic")
    if isinstance(writes, type):
        raise TargetError(f"writes= is the class {writes.__name__}", hint=f"make one: {writes.__name__}(…)")
    if not isinstance(writes, Target):
        raise TargetError(f"writes= is a {type(writes).__name__}, expected a Topic or a Target")
    for name in ("upsert_key", "columns"):
        seen = getattr(writes, name)
        if isinstance(seen, str):
            raise TargetError(f"{name} of {type(writes).__name__} is a text", hint=f'write ("{seen}",)')
    return TargetWithSideOutputs(writes, aside) if aside else writes


@dataclass(frozen=True)
class TargetWithSideOutputs(Target):
    """A target that takes a flow's results, and the topics of its side outputs."""

    target: Target
    side_outputs: tuple[Topic[Any], ...]

    @property
    def guarantees(self) -> Guarantees:  # type: ignore[override]
        return self.target.guarantees

    @property
    def crash_points(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*CRASH_POINTS, "sink.side-outputs.written", *self.target.crash_points)

    @property
    def upsert_key(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.target.upsert_key

    @property
    def columns(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return self.target.columns

    @property
    def title(self) -> str:
        return self.target.title

    @property
    def topics(self) -> tuple[Topic[Any], ...]:
        return self.side_outputs

    def limitation(self, mode: Mode, guarantee: Guarantee | None) -> str | None:
        return self.target.limitation(mode, guarantee)

    def may_repeat(self, guarantee: Guarantee) -> bool:
        return self.target.may_repeat(guarantee)

    def rows(self, results: Results) -> DataFrame:
        """Return the target's rows, and those of side outputs with their message."""
        made = with_messages(
            results.ordered(),
            flow=results.flow,
            side_outputs={topic.name: topic for topic in self.side_outputs},
            schemas=results.schemas(self.side_outputs),
            one_to_one=results.one_to_one,
            maker=results.maker,
            passed_on=results.headers,
        )
        return self.target.rows(replace(results, frame=made))

    def sink(self, schema: StructType, options: SinkOptions) -> Sink:
        """Side outputs are few: one lane writes them, and so each batch in one transaction."""
        own = StructType([each for each in schema if each.name != MESSAGE])
        topics = replace(options, lanes=1)
        if options.guarantee == "at-least-once":
            topics = replace(topics, guarantee="exactly-once")
        return SinkWithSideOutputs(options.id, KafkaSink(topics), self.target.sink(own, options))

    def contents(self, spark: SparkSession, schema: StructType, inspection: Inspection) -> DataFrame | None:
        return self.target.contents(spark, schema, inspection)

    def compare(self, due: DataFrame, inspection: Inspection) -> Compared:
        """Compare both; the rows are kept meanwhile, for they might go different ways another time."""
        kept = due.persist()
        own = replace(inspection, possible=lambda: target_rows(inspection.possible()), ran=nothing)
        aside = replace(own, possible=lambda: messages_of(inspection.possible()), once=True)
        try:
            compared = self.target.compare(target_rows(kept), own)
            return compared.and_also(compare_messages(messages_of(kept), self.side_outputs, aside))
        finally:
            kept.unpersist()


class SinkWithSideOutputs:
    """Writes a batch's side outputs, then its target; each is exactly once, by its own ledger.

    The two are not one transaction. What dies in between leaves the side outputs one batch ahead of the
    target, which gets its part when the batch is repeated. The rows are kept while both are written: computed
    twice, they might go different ways.
    """

    def __init__(self, id: str, topics: Sink, target: Sink) -> None:
        self.id = id
        self._topics, self._target = topics, target

    def entries(self) -> tuple[Entry, ...]:
        """What both have written down last."""
        return (*self._topics.entries(), *self._target.entries())

    def open(self, *, anew: bool = False) -> tuple[Entry, ...]:
        """Become the writer of both."""
        topics, target = self._topics.open(anew=anew), self._target.open(anew=anew)
        for side in topics:
            for entry in target:
                _refuse_apart(side.batch, entry.batch, self.id)
        return (*topics, *target)

    def take_over(self) -> tuple[Entry, ...]:
        """Shut an earlier writer of both out."""
        return (*self._topics.take_over(), *self._target.take_over())

    def write(self, rows: DataFrame, batch: Batch, before_commit: BeforeCommit = nothing) -> bool:
        """Write what either of them has not; say whether the rows were read."""
        kept = rows.persist()
        try:
            sent = self._topics.write(messages_of(kept), batch, before_commit)
            reach("sink.side-outputs.written", self.id)
            return self._target.write(target_rows(kept), batch, before_commit) or sent
        finally:
            kept.unpersist()

    def close(self) -> None:
        self._topics.close()
        self._target.close()


def messages_of(rows: DataFrame) -> DataFrame:
    """The side outputs among rows, as Kafka's sink takes them."""
    return rows.where(F.col(MESSAGE).isNotNull()).select(f"{MESSAGE}.*")


def target_rows(rows: DataFrame) -> DataFrame:
    """The rows that are no side outputs, as the target's sink takes them."""
    return rows.where(F.col(MESSAGE).isNull()).drop(MESSAGE)


def _refuse_apart(side: Batch | None, target: Batch | None, id: str) -> None:
    """Side outputs may be new, as far as the target, or one batch ahead of it."""
    if side is None or side == target:
        return
    if side.number != 0 if target is None else not side.follows(target):
        raise LedgerError(
            f"sink {id!r} has written {side} to its side outputs, and {target or 'nothing'} to its target",
            hint="one of the ledgers was lost, or the flow ran without its side outputs for a while: bring "
            "the ledger back, or give the flow another name",
        )
