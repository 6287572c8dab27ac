"""What a flow reads, as frames of the whole log: the arguments of its function in a replay."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from penstock.identity import Identity
from penstock.log import Topic
from penstock.log.archive.tiers import Tiers
from penstock.log.ledger import Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.flow import Flow
from penstock.pipeline.generation import Generations
from penstock.process import read
from penstock.process.lookup import current
from penstock.settings import Settings

MALFORMED = "malformed"  # records are counted and left out, as flows leave them out

_BATCHES = 100  # as many as Spark keeps


@dataclass(frozen=True)
class Reading:
    """A flow and where its topics are."""

    identity: Identity
    flow: Flow
    settings: Settings
    spark: SparkSession

    def sources(self, end: Offsets) -> dict[str, DataFrame]:
        """Return the topics that it reads, up to an end where there is one."""
        return {name: self._read(topic, end) for name, topic in self.flow.reads.items()}

    def tables(self) -> dict[str, DataFrame]:
        """Return the tables that it looks up as they are now: what they were then is not known."""
        found = self.flow.looks_up.items()
        return {name: current(self._read(table, {}), str(table.key)) for name, table in found}

    def position(self) -> Offsets:
        """Return how far it has read: its table has nothing of what is behind that."""
        return self._checkpoint().position() or self._generations.read().end

    def ends(self) -> list[Offsets]:
        """Return where its last batches ended, as far as the checkpoint has it; the last one first."""
        checkpoint = self._checkpoint()
        last = checkpoint.last_committed()
        numbers = [] if last is None else range(last, max(-1, last - _BATCHES), -1)
        return [end for number in numbers if (end := checkpoint.position(number))]

    @property
    def _generations(self) -> Generations:
        return Generations(self.spark, self.settings, self.identity)

    def _checkpoint(self) -> Checkpoint:
        folder = self._generations.at_work().folder(self.settings.flows)
        return Checkpoint(self.spark, f"{folder}/checkpoint")

    def _read(self, topic: Topic[Any], end: Offsets) -> DataFrame:
        counted = f"{MALFORMED} in {topic.name}"
        return read(self.spark, topic, self.settings, counted=counted, end=self._everywhere(topic, end))

    def _everywhere(self, topic: Topic[Any], end: Offsets) -> Offsets | None:
        """Where to end in every partition, as Spark wants it; of new ones nothing was read."""
        if topic.name not in end:
            return None
        firsts = {part: low for part, (low, _) in Tiers(self.settings).offsets(topic.name).items()}
        return {topic.name: {**firsts, **end[topic.name]}}
